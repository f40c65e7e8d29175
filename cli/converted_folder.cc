#include "cli/converted_folder.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "loaders/convert/convert.h"
#include "loaders/gguf.h"
#include "runtime/hub/model_store.h"
#include "xxhash.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// Another one whenever conversion gives other files.
constexpr char kVersion[] = "2";

std::string HashOf(absl::string_view text) {
  return absl::StrFormat("%016x", XXH3_64bits(text.data(), text.size()));
}

// Of a folder, as far as it may stand in the name of a model.
std::string PlainName(const fs::path& folder) {
  constexpr size_t kLongest = 64;
  std::string name;
  for (char c : folder.filename().string()) {
    const bool plain = absl::ascii_isalnum(c) ||
                       (!name.empty() && (c == '-' || c == '_' || c == '.'));
    if (plain && name.size() < kLongest) name += c;
  }
  return name.empty() ? "model" : name;
}

absl::StatusOr<fs::path> PlaceOf(const std::string& folder) {
  std::error_code error;
  fs::path place = fs::canonical(folder, error);
  if (!error) return place;
  return absl::NotFoundError(
      absl::StrCat("cannot open folder: ", folder, ": ", error.message()));
}

std::string RepositoryOf(const fs::path& place) {
  return absl::StrCat("local/", PlainName(place), "-",
                      HashOf(place.string()).substr(0, 8));
}

// That the file was not cut off, emptied or begun anew by others.
absl::Status CheckWhole(const std::string& path) {
  return GgufFile::Open(path).status();
}

// What was made of other states of the folder, unfinished files included, and
// files as they lay before states had folders.
void RemoveOthers(const fs::path& repository, const std::string& state) {
  std::error_code error;
  std::vector<fs::path> old;
  for (fs::directory_iterator it(repository, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename() != state) old.push_back(it->path());
  }
  for (const fs::path& path : old) fs::remove_all(path, error);
}

}  // namespace

absl::StatusOr<std::string> RepositoryOfFolder(const std::string& folder) {
  std::error_code error;
  fs::path place = fs::weakly_canonical(folder, error);
  // "folder/" is "folder".
  if (!error && !place.has_filename()) place = place.parent_path();
  if (!error) return RepositoryOf(place);
  return absl::NotFoundError(
      absl::StrCat("cannot open folder: ", folder, ": ", error.message()));
}

absl::StatusOr<std::string> ConvertedFolder(const std::string& folder,
                                            const CommonFlags& common) {
  WEFT_ASSIGN_OR_RETURN(const fs::path place, PlaceOf(folder));
  WEFT_ASSIGN_OR_RETURN(const ModelStore store, ModelStore::FromEnvironment());
  WEFT_ASSIGN_OR_RETURN(const std::string stamp, FolderStamp(place.string()));
  const std::string repository = RepositoryOf(place);
  const std::string state = HashOf(absl::StrCat(kVersion, "\n", stamp));
  const std::string path = store.PathOf(
      repository, absl::StrCat(state, "/", PlainName(place), ".gguf"));
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    const absl::Status whole = CheckWhole(path);
    if (whole.ok()) return path;
    PrintWarnings(common, {absl::StrCat(whole.message(), ": it is made anew")});
  }
  if (!common.quiet) {
    std::cerr << "converting " << folder << " for this and later starts\n";
  }
  const fs::path target_folder = fs::path(path).parent_path();
  fs::create_directories(target_folder, error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot create folder: ", target_folder.string(), ": ",
                     error.message(), ": name another in WEFT_CACHE"));
  }
  ConvertOptions options;
  options.name = place.filename().string();
  const Progress progress = MakeProgress(common, "converting");
  options.progress = ByTensor(progress);
  const absl::StatusOr<ConvertReport> report =
      ConvertFolder(place.string(), path, options);
  if (progress) progress(1.0);
  if (!report.ok()) {
    // What was made for nothing; folders with files stay.
    rmdir(target_folder.c_str());
    rmdir(target_folder.parent_path().c_str());
    return report.status();
  }
  PrintWarnings(common, report->warnings);
  RemoveOthers(target_folder.parent_path(), state);
  return path;
}

}  // namespace weft
