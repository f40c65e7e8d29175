#include "runtime/hub/model_store.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/output_file.h"
#include "base/status.h"
#include "runtime/hub/part_file.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr char kModels[] = "models";
constexpr char kChecksumEnding[] = ".sha256";
constexpr char kPlanEnding[] = ".weft";
constexpr size_t kChecksumDigits = 64;
// Of folders below a repository's.
constexpr int kDeepest = 8;

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<fs::path> EntriesOf(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    entries.push_back(it->path());
  }
  absl::c_sort(entries);
  return entries;
}

bool IsFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

int64_t SizeOf(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

// Paths of all files below a folder.
void FindFiles(const fs::path& folder, int depth,
               std::vector<fs::path>* files) {
  std::error_code error;
  for (fs::path& entry : EntriesOf(folder)) {
    if (fs::is_regular_file(entry, error)) {
      files->push_back(std::move(entry));
    } else if (depth < kDeepest && IsFolder(entry)) {
      FindFiles(entry, depth + 1, files);
    }
  }
}

std::vector<fs::path> FilesBelow(const fs::path& folder) {
  std::vector<fs::path> files;
  FindFiles(folder, 0, &files);
  return files;
}

// Removes folders that are empty, from this one up to `top`.
void RemoveEmpty(fs::path folder, const fs::path& top) {
  std::error_code error;
  while (folder != top && folder.has_relative_path() &&
         rmdir(folder.c_str()) == 0) {
    folder = folder.parent_path();
  }
}

// Plans, and what their writers left that were ended (base/output_file.h).
std::vector<std::string> BesideModel(const std::string& model_path) {
  const fs::path path = model_path;
  const std::string prefix = path.filename().string() + ".";
  std::vector<std::string> found;
  for (const fs::path& entry : EntriesOf(path.parent_path())) {
    const std::string name = entry.filename().string();
    if (absl::StartsWith(name, prefix) &&
        (absl::EndsWith(name, kPlanEnding) ||
         absl::StrContains(name, absl::StrCat(kPlanEnding, ".tmp.")))) {
      found.push_back(entry.string());
    }
  }
  return found;
}

int64_t RemoveFile(const std::string& path) {
  const int64_t bytes = SizeOf(path);
  return unlink(path.c_str()) == 0 ? bytes : 0;
}

}  // namespace

absl::StatusOr<ModelStore> ModelStore::FromEnvironment() {
  for (const char* name : {"WEFT_CACHE", "WEFT_HOME"}) {
    if (std::string folder = weft::FromEnvironment(name); !folder.empty()) {
      return ModelStore(std::move(folder));
    }
  }
  // One that is not absolute does not count, says the specification.
  const std::string cache = weft::FromEnvironment("XDG_CACHE_HOME");
  if (absl::StartsWith(cache, "/")) return ModelStore(cache + "/weft");
  const std::string home = weft::FromEnvironment("HOME");
  if (!home.empty()) return ModelStore(home + "/.cache/weft");
  return absl::FailedPreconditionError(
      "no folder for models: HOME is not set: name one in WEFT_CACHE");
}

std::string ModelStore::RepositoryFolder(const std::string& repository) const {
  return absl::StrCat(folder_, "/", kModels, "/", repository);
}

std::string ModelStore::PathOf(const std::string& repository,
                               absl::string_view file) const {
  return absl::StrCat(RepositoryFolder(repository), "/", file);
}

bool ModelStore::Holds(const std::string& path) const {
  std::error_code error;
  const fs::path top = fs::weakly_canonical(fs::path(folder_) / kModels, error);
  if (error) return false;
  const fs::path file = fs::weakly_canonical(path, error);
  if (error) return false;
  return absl::StartsWith(file.string(), top.string() + "/");
}

std::vector<HubFile> ModelStore::FilesOf(const std::string& repository) const {
  const fs::path folder = RepositoryFolder(repository);
  std::vector<HubFile> files;
  for (const fs::path& path : FilesBelow(folder)) {
    HubFile file;
    file.path = path.lexically_relative(folder).string();
    file.bytes = SizeOf(path);
    files.push_back(std::move(file));
  }
  return files;
}

StoredModel ModelStore::Describe(const std::string& repository,
                                 ModelChoice model) const {
  StoredModel stored;
  stored.repository = repository;
  stored.path = PathOf(repository, model.files[0].path);
  for (HubFile& file : model.files) {
    file.sha256 = ReadChecksum(PathOf(repository, file.path));
  }
  std::error_code error;
  const auto written = fs::last_write_time(stored.path, error);
  if (!error) {
    // C++17 has no way between the two clocks.
    stored.pulled = absl::Now() +
                    absl::FromChrono(written - decltype(written)::clock::now());
  }
  for (const std::string& plan : PlansOf(stored.path)) {
    stored.plan_bytes += SizeOf(plan);
  }
  stored.name = absl::StrCat(
      repository, ":", model.type.empty() ? model.files[0].path : model.type);
  stored.model = std::move(model);
  return stored;
}

std::vector<StoredModel> ModelStore::List() const {
  std::vector<StoredModel> models;
  for (const fs::path& owner : EntriesOf(fs::path(folder_) / kModels)) {
    if (!IsFolder(owner)) continue;
    for (const fs::path& folder : EntriesOf(owner)) {
      const std::string repository = absl::StrCat(
          owner.filename().string(), "/", folder.filename().string());
      if (!IsFolder(folder) || !ParseHubName(repository)) continue;
      std::map<std::string, int> types;
      std::vector<ModelChoice> choices = ChoicesOf(FilesOf(repository));
      for (const ModelChoice& choice : choices) ++types[choice.type];
      for (ModelChoice& choice : choices) {
        const bool several = types[choice.type] > 1;
        models.push_back(Describe(repository, std::move(choice)));
        StoredModel& model = models.back();
        if (several) {
          model.name = absl::StrCat(repository, ":", model.model.files[0].path);
        }
      }
    }
  }
  return models;
}

absl::StatusOr<StoredModel> ModelStore::Find(const HubName& name) const {
  WEFT_ASSIGN_OR_RETURN(ModelChoice model,
                        ChooseAmong(FilesOf(name.repository), name));
  return Describe(name.repository, std::move(model));
}

bool ModelStore::Has(const std::string& repository) const {
  return !ChoicesOf(FilesOf(repository)).empty();
}

absl::StatusOr<int64_t> ModelStore::Remove(const HubName& name) const {
  const fs::path top = fs::path(folder_) / kModels;
  const fs::path folder = RepositoryFolder(name.repository);
  std::vector<std::string> models;
  int64_t bytes = 0;
  if (name.type.empty()) {
    for (const fs::path& path : FilesBelow(folder)) {
      const std::string file = path.string();
      if (absl::EndsWith(file, kPartEnding)) {
        // "x.gguf.0123456789abcdef.part" is of "x.gguf".
        const std::string target = fs::path(path.parent_path() / path.stem())
                                       .replace_extension()
                                       .string();
        const int64_t size = SizeOf(path);
        RemoveParts(target);
        std::error_code error;
        if (!fs::exists(path, error)) bytes += size;
      } else if (absl::EndsWith(file, ".gguf")) {
        models.push_back(file);
      }
    }
    if (models.empty() && bytes == 0) {
      return absl::NotFoundError(
          absl::StrCat("no such model: ", name.repository,
                       ": weft list names what is there"));
    }
  } else {
    absl::StatusOr<StoredModel> model = Find(name);
    if (!model.ok()) {
      return absl::Status(model.status().code(),
                          absl::StrCat(model.status().message(),
                                       ": weft list names what is there"));
    }
    for (const HubFile& file : model->model.files) {
      models.push_back(PathOf(name.repository, file.path));
    }
  }
  for (const std::string& model : models) {
    for (const std::string& file : BesideModel(model)) {
      bytes += RemoveFile(file);
    }
    RemoveParts(model);
    bytes += RemoveFile(model + kChecksumEnding);
    bytes += RemoveFile(model);
    std::error_code error;
    if (fs::exists(model, error)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot remove file: ", model, ": its folder may not be written to"));
    }
  }
  for (const std::string& model : models) {
    RemoveEmpty(fs::path(model).parent_path(), top);
  }
  RemoveEmpty(folder, top);
  return bytes;
}

std::string PlanPathOf(const std::string& model_path, absl::string_view key) {
  return absl::StrCat(model_path, ".", key, kPlanEnding);
}

std::vector<std::string> PlansOf(const std::string& model_path) {
  std::vector<std::string> plans = BesideModel(model_path);
  plans.erase(std::remove_if(plans.begin(), plans.end(),
                             [](const std::string& path) {
                               return !absl::EndsWith(path, kPlanEnding);
                             }),
              plans.end());
  return plans;
}

std::string ReadChecksum(const std::string& path) {
  std::ifstream file(path + kChecksumEnding);
  std::string line(kChecksumDigits, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  return file && absl::c_all_of(line, absl::ascii_isxdigit) ? line : "";
}

absl::Status WriteChecksum(const std::string& path, absl::string_view sha256) {
  return WriteFile(
      path + kChecksumEnding,
      absl::StrCat(sha256, "  ", fs::path(path).filename().string(), "\n"));
}

}  // namespace weft
