#include "runtime/hub/pull.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/hub/part_file.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// That a file system should keep when all is there.
constexpr int64_t kSpareBytes = 64 << 20;

std::string HashOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  Sha256 hash;
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    hash.Add({buffer.data(), static_cast<size_t>(file.gcount())});
  }
  return file.bad() ? "" : hash.Finish();
}

// Whether the file is the hub's.
bool IsThere(const std::string& path, const HubFile& file) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error || static_cast<int64_t>(bytes) != file.bytes) return false;
  if (file.sha256.empty()) return true;
  std::string sha256 = ReadChecksum(path);
  if (sha256.empty()) {
    // Copied here by hand, or a pull that ended between its last two steps.
    sha256 = HashOfFile(path);
    if (sha256 == file.sha256) WriteChecksum(path, sha256).IgnoreError();
  }
  return sha256 == file.sha256;
}

absl::Status CheckSpace(const std::string& folder, int64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error || bytes == 0) return absl::OkStatus();  // writing will tell
  const int64_t free = static_cast<int64_t>(space.available);
  if (free - kSpareBytes >= bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "not enough space: ", folder, ": ", DescribeBytes(bytes),
      " are to come, ", DescribeBytes(free), " are free, and ",
      DescribeBytes(kSpareBytes),
      " of them stay so: remove models (weft list, weft rm), or name "
      "another folder in WEFT_CACHE"));
}

// What files begin with that are often in place of a model.
constexpr std::pair<absl::string_view, absl::string_view> kOtherFiles[] = {
    {"<", "a web page"},
    {"version https://git-lfs", "a pointer of Git LFS and not the file itself"},
    {"{", "JSON"},
    {"PK", "a zip archive"},
    {"", "something else"},
};

// Removes what is no GGUF file.
absl::Status CheckMagic(const std::string& path) {
  std::string begin(24, '\0');
  {
    std::ifstream file(path, std::ios::binary);
    file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    begin.resize(static_cast<size_t>(file.gcount()));
  }
  if (absl::StartsWith(begin, "GGUF")) return absl::OkStatus();
  std::error_code ignored;
  fs::remove(path, ignored);
  for (const auto& [other, what] : kOtherFiles) {
    if (!absl::StartsWith(begin, other)) continue;
    return absl::DataLossError(
        absl::StrCat("not a GGUF file: ", path, ": what the hub sent is ",
                     begin.empty() ? "empty" : what,
                     ": it was removed: choose another file or hub"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Pulled> PullOnce(Hub* hub, const ModelStore& store,
                                const HubName& name,
                                const PullObserver& observer) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<HubFile> files,
                        hub->ListFiles(name.repository));
  const std::vector<ModelChoice> all = ChoicesOf(files);
  WEFT_ASSIGN_OR_RETURN(ModelChoice model, ChooseAmong(files, name));
  std::vector<bool> there;
  int64_t to_come = 0;
  for (HubFile& file : model.files) {
    WEFT_RETURN_IF_ERROR(hub->Complete(name.repository, &file));
    const std::string path = store.PathOf(name.repository, file.path);
    there.push_back(IsThere(path, file));
    if (there.back()) continue;
    std::error_code error;
    const std::string folder = fs::path(path).parent_path().string();
    fs::create_directories(folder, error);
    if (error) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot make folder: ", folder, ": ", error.message(),
                       ": name another in WEFT_CACHE"));
    }
    to_come +=
        file.bytes - std::min(file.bytes, PartBytes(path, file.sha256.empty()
                                                              ? file.etag
                                                              : file.sha256));
  }
  Pulled pulled;
  pulled.was_there =
      std::find(there.begin(), there.end(), false) == there.end();
  if (!pulled.was_there && observer.chosen) observer.chosen(model, all);
  WEFT_RETURN_IF_ERROR(CheckSpace(
      fs::path(store.PathOf(name.repository, "")).parent_path().string(),
      to_come));
  std::error_code ignored;
  int64_t done = 0;
  for (size_t i = 0; i < model.files.size(); ++i) {
    const HubFile& file = model.files[i];
    const std::string path = store.PathOf(name.repository, file.path);
    if (!there[i]) {
      if (file.sha256.empty() && observer.notice) {
        observer.notice(
            absl::StrCat(file.path,
                         ": the hub gives no checksum, so that what comes is "
                         "compared with its size alone"));
      }
      const absl::StatusOr<std::string> sha256 =
          hub->Download(name.repository, file, path, [&](int64_t bytes) {
            if (observer.progress) {
              observer.progress(done + bytes, model.bytes());
            }
          });
      if (absl::IsAlreadyExists(sha256.status())) {
        // Another process had it, and is done or has given up.
        if (!IsThere(path, file)) {
          return absl::AbortedError(absl::StrCat(
              "another process did not finish: ", path, ": pull it again"));
        }
      } else {
        WEFT_RETURN_IF_ERROR(sha256.status());
        WEFT_RETURN_IF_ERROR(CheckMagic(path));
        WEFT_RETURN_IF_ERROR(WriteChecksum(path, *sha256));
      }
    }
    done += file.bytes;
  }
  if (!pulled.was_there) {
    // Those of what was there before.
    for (const std::string& plan :
         PlansOf(store.PathOf(name.repository, model.files[0].path))) {
      fs::remove(plan, ignored);
    }
  }
  // By its file: the name may mean another of those that are there.
  WEFT_ASSIGN_OR_RETURN(pulled.model,
                        store.Find({name.repository, model.files[0].path}));
  return pulled;
}

}  // namespace

absl::StatusOr<Pulled> Pull(Hub* hub, const ModelStore& store,
                            const HubName& name, const PullObserver& observer) {
  absl::StatusOr<Pulled> pulled = PullOnce(hub, store, name, observer);
  if (!absl::IsAborted(pulled.status())) return pulled;
  // The hub got another content between list and file: its list is another,
  // too.
  return PullOnce(hub, store, name, observer);
}

}  // namespace weft
