#include "cli/model_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/converted_folder.h"
#include "cli/files.h"
#include "loaders/convert/convert.h"

namespace weft {
namespace {

// Of a published model's files.
int64_t WeightBytes(const std::filesystem::path& folder) {
  int64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end;
       !error && it != end; it.increment(error)) {
    struct stat file;
    if (it->path().extension() == ".safetensors" &&
        stat(it->path().c_str(), &file) == 0) {
      bytes += file.st_size;
    }
  }
  return bytes;
}

// What a published model is made of; others, such as a README, say nothing.
bool IsPublishedFile(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".safetensors" || ending == ".json" || ending == ".model" ||
         ending == ".jinja";
}

ModelSet::Source* Find(absl::string_view name,
                       std::vector<ModelSet::Source>* sources) {
  for (ModelSet::Source& source : *sources) {
    if (source.Answers(name)) return &source;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::vector<ModelSet::Source>> ModelsIn(
    const std::string& folder, const std::vector<std::string>& aliases) {
  std::map<std::string, ModelSet::Source> published, files, plans;
  std::map<std::string, int64_t> bytes;  // of all parts
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string ending = entry.path().extension().string();
    const bool is_plan = ending == ".weft";
    struct stat file;
    if (IsConvertibleFolder(entry.path().string())) {
      ModelSet::Source source;
      source.id = entry.path().filename().string();
      source.path = entry.path().string();
      source.created =
          stat(entry.path().c_str(), &file) == 0 ? file.st_mtime : 0;
      source.file_bytes = WeightBytes(entry.path());
      published.emplace(source.id, std::move(source));
      continue;
    }
    if ((!is_plan && ending != ".gguf") ||
        stat(entry.path().c_str(), &file) != 0 || !S_ISREG(file.st_mode)) {
      continue;
    }
    const std::string stem = entry.path().stem().string();
    std::string part;
    ModelSet::Source source;
    source.id = stem.substr(0, SplitMark(stem, &part));
    source.path = entry.path().string();
    source.created = file.st_mtime;
    source.file_bytes = file.st_size;
    if (!is_plan) bytes[source.id] += file.st_size;
    if (!is_plan && !part.empty() && part != "00001") continue;
    (is_plan ? plans : files).emplace(source.id, source);
  }
  for (auto& [name, source] : files) source.file_bytes = bytes[name];
  plans.merge(files);
  plans.merge(published);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the folder ", folder, ": ", error.message()));
  }
  std::vector<ModelSet::Source> sources;
  for (auto& [name, source] : plans) sources.push_back(std::move(source));
  if (sources.empty()) {
    return absl::NotFoundError(absl::StrCat(
        folder,
        " has no models: want .gguf or .weft files in it, or folders of "
        "published models (config.json and safetensors)"));
  }
  for (const std::string& alias : aliases) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(alias, absl::MaxSplits('=', 1));
    ModelSet::Source* const source = Find(parts.second, &sources);
    if (parts.first.empty() || source == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--alias ", alias, ": want NAME=MODEL with a model of ", folder));
    }
    if (Find(parts.first, &sources) != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("--alias ", alias, ": this name is taken"));
    }
    source->aliases.push_back(parts.first);
  }
  return sources;
}

std::string FilesIdentity(const ModelSet::Source& source) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> files;
  if (!fs::is_directory(source.path, error)) {
    files = PartsOf(source.path);
  } else {
    fs::recursive_directory_iterator it(source.path, error);
    for (const fs::recursive_directory_iterator end; !error && it != end;
         it.increment(error)) {
      // Of pooling; there is nothing further down.
      if (it.depth() > 0) it.disable_recursion_pending();
      if (IsPublishedFile(it->path())) files.push_back(it->path());
    }
  }
  std::sort(files.begin(), files.end());
  std::string identity;
  for (const fs::path& file : files) {
    struct stat info;
    if (stat(file.c_str(), &info) != 0) continue;
    absl::StrAppend(&identity, file.string(), " ", info.st_dev, " ",
                    info.st_ino, " ", info.st_size, " ", info.st_mtim.tv_sec,
                    ".", info.st_mtim.tv_nsec, "\n");
  }
  return identity;
}

absl::Status PutFirst(const std::string& model,
                      std::vector<ModelSet::Source>* sources) {
  const auto it = std::find_if(
      sources->begin(), sources->end(), [&](const ModelSet::Source& source) {
        if (source.Answers(model)) return true;
        if (IsConvertibleFolder(source.path)) {
          // MODEL is the file made of it by now.
          const absl::StatusOr<std::string> made =
              RepositoryOfFolder(source.path);
          return made.ok() && absl::StrContains(model, *made + "/");
        }
        std::error_code error;
        return std::filesystem::equivalent(source.path, model, error);
      });
  if (it == sources->end()) {
    return absl::NotFoundError(
        absl::StrCat(model, " is no model of the folder of --models"));
  }
  std::rotate(sources->begin(), it, it + 1);
  return absl::OkStatus();
}

}  // namespace weft
