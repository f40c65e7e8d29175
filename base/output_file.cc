#include "base/output_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace weft {
namespace {

constexpr int kMostLinks = 40;
constexpr char kInfix[] = ".tmp.";
constexpr size_t kRandomDigits = 16;
constexpr int kTries = 100;

// Names that a signal handler can read whenever it comes: they never move.
struct Slot {
  std::atomic<bool> taken{false}, named{false};
  char name[PATH_MAX];
};
Slot g_slots[16];

int Remember(const std::string& name) {
  for (size_t i = 0; i < std::size(g_slots); ++i) {
    Slot& slot = g_slots[i];
    if (name.size() >= sizeof(slot.name) || slot.taken.exchange(true)) continue;
    std::memcpy(slot.name, name.c_str(), name.size() + 1);
    slot.named = true;
    return static_cast<int>(i);
  }
  return -1;  // then the next writer removes it
}

void Forget(int slot) {
  if (slot < 0) return;
  g_slots[slot].named = false;
  g_slots[slot].taken = false;
}

constexpr char kDiskFull[] = "weft/disk-full";

absl::Status SystemError(absl::string_view what, int error) {
  absl::Status status = absl::UnavailableError(
      absl::StrCat("cannot write file: ", what, ": ", std::strerror(error)));
  if (error == ENOSPC || error == EDQUOT) {
    status.SetPayload(kDiskFull, absl::Cord());
  }
  return status;
}

struct Place {
  // The file itself. By hand, since the target of a link need not be there yet.
  std::string target;
  bool special = false;  // nothing that a rename may replace
};

absl::StatusOr<Place> Resolve(const std::string& path) {
  namespace fs = std::filesystem;
  Place place;
  std::error_code error;
  fs::path target = path;
  for (int hops = 0; hops < kMostLinks && fs::is_symlink(target, error);
       ++hops) {
    const fs::path link = fs::read_symlink(target, error);
    target = link.is_absolute() ? link : target.parent_path() / link;
  }
  place.target = target.string();
  const fs::file_status status = fs::status(place.target, error);
  if (fs::is_directory(status)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot write file: ", path, ": is a directory, give a file"));
  }
  place.special = fs::exists(status) && !fs::is_regular_file(status);
  return place;
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// What temporary names of a target begin with. Names have an end: of a long one
// the beginning must do.
std::string Prefix(const std::string& target) {
  std::string name = std::filesystem::path(target).filename().string();
  name.resize(std::min(name.size(),
                       NAME_MAX - std::strlen(kInfix) - size_t{kRandomDigits}));
  return absl::StrCat(name, kInfix);
}

// Whether this is the name of a temporary file of a target for whose prefix
// `is_prefix` is true.
template <typename IsPrefix>
bool IsTemporary(absl::string_view name, const IsPrefix& is_prefix) {
  if (name.size() < kRandomDigits) return false;
  const size_t end = name.size() - kRandomDigits;
  return std::all_of(name.begin() + end, name.end(), absl::ascii_isxdigit) &&
         is_prefix(name.substr(0, end));
}

// Whether `path` is the file that is open.
bool StandsThere(const std::string& path, int file) {
  struct stat there, here;
  return lstat(path.c_str(), &there) == 0 && fstat(file, &here) == 0 &&
         there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

// Removes what writers of such targets left that are dead.
template <typename IsPrefix>
void RemoveStale(const std::string& folder, const IsPrefix& is_prefix) {
  DIR* entries = opendir(folder.c_str());
  if (entries == nullptr) return;
  std::vector<std::string> found;
  while (const dirent* entry = readdir(entries)) {
    if (IsTemporary(entry->d_name, is_prefix)) {
      found.push_back(absl::StrCat(folder, "/", entry->d_name));
    }
  }
  closedir(entries);
  for (const std::string& path : found) {
    const int file =
        open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    struct stat info;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) &&
        flock(file, LOCK_EX | LOCK_NB) == 0 && StandsThere(path, file)) {
      unlink(path.c_str());
    }
    close(file);
  }
}

absl::Status WriteAll(int file, absl::string_view content,
                      const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return SystemError(path, written < 0 ? errno : ENOSPC);
    content.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OutputFile> OutputFile::Create(const std::string& path,
                                              LeftBehind left_behind) {
  WEFT_ASSIGN_OR_RETURN(Place place, Resolve(path));
  if (place.special) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write file: ", path,
                     ": is a device, pipe or socket: give the path of a file"));
  }
  OutputFile output;
  output.target_ = std::move(place.target);
  WEFT_RETURN_IF_ERROR(output.Open(left_behind));
  return output;
}

absl::Status OutputFile::Open(LeftBehind left_behind) {
  const std::string folder = FolderOf(target_);
  const std::string prefix = Prefix(target_);
  if (left_behind == LeftBehind::kGoes) {
    RemoveStale(folder, [&](absl::string_view name) { return name == prefix; });
  }
  for (int i = 0; i < kTries; ++i) {
    uint64_t number;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
      return SystemError(target_, errno);
    }
    const std::string name =
        absl::StrCat(folder, "/", prefix, absl::Hex(number, absl::kZeroPad16));
    // Known before it is there: a signal may come in between.
    slot_ = Remember(name);
    file_ = open(name.c_str(),
                 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file_ < 0) {
      const int error = errno;
      Forget(std::exchange(slot_, -1));
      if (error == EEXIST) continue;
      return SystemError(
          absl::StrCat(target_, ": nothing can be created in ", folder), error);
    }
    temporary_ = name;
    // Between the two calls another writer may have taken it for left behind.
    const bool locked = flock(file_, LOCK_EX | LOCK_NB) == 0;
    if ((locked || errno != EWOULDBLOCK) && StandsThere(name, file_)) {
      return absl::OkStatus();
    }
    close(std::exchange(file_, -1));
    unlink(temporary_.c_str());
    temporary_.clear();
    Forget(std::exchange(slot_, -1));
  }
  return SystemError(target_, EEXIST);
}

OutputFile::OutputFile(OutputFile&& other) noexcept {
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(file_, other.file_);
  std::swap(slot_, other.slot_);
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
  if (file_ >= 0) close(file_);
  Forget(slot_);
}

absl::Status OutputFile::Resize(int64_t bytes) const {
  if (ftruncate(file_, bytes) != 0) return SystemError(target_, errno);
  return absl::OkStatus();
}

absl::Status OutputFile::Write(int64_t offset,
                               absl::Span<const uint8_t> part) const {
  while (!part.empty()) {
    const ssize_t written = pwrite(file_, part.data(), part.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return SystemError(target_, written < 0 ? errno : ENOSPC);
    part.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Commit() {
  // What is replaced keeps who may read it.
  struct stat replaced;
  if (stat(target_.c_str(), &replaced) == 0 &&
      fchmod(file_, replaced.st_mode & 0777) != 0) {
    return SystemError(target_, errno);
  }
  // Some file systems tell only here that there was no space. The lock is held
  // until the file has its name.
  if (fsync(file_) != 0 ||
      std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    return SystemError(target_, errno);
  }
  temporary_.clear();
  Forget(std::exchange(slot_, -1));
  if (close(std::exchange(file_, -1)) != 0) return SystemError(target_, errno);
  const std::string folder = FolderOf(target_);
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A folder that may be written to but not read cannot be made durable; nor
  // can those of some file systems (EINVAL).
  if (opened < 0) return absl::OkStatus();
  const int error = fsync(opened) != 0 ? errno : 0;
  close(opened);
  return error == 0 || error == EINVAL || error == ENOTSUP
             ? absl::OkStatus()
             : SystemError(folder, error);
}

absl::Status WriteFile(const std::string& path, absl::string_view content) {
  WEFT_ASSIGN_OR_RETURN(const Place place, Resolve(path));
  if (place.special) {
    const int file = open(place.target.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) return SystemError(path, errno);
    absl::Status status = WriteAll(file, content, path);
    if (close(file) != 0 && status.ok()) status = SystemError(path, errno);
    return status;
  }
  return ReplaceFile(path, content, LeftBehind::kGoes);
}

absl::Status ReplaceFile(const std::string& path, absl::string_view content,
                         LeftBehind left_behind) {
  WEFT_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, left_behind));
  WEFT_RETURN_IF_ERROR(file.Write(
      0, absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(content.data()),
                             content.size())));
  return file.Commit();
}

bool IsDiskFull(const absl::Status& status) {
  return status.GetPayload(kDiskFull).has_value();
}

void RemoveLeftBehind(const std::string& folder, absl::string_view ending) {
  RemoveStale(folder, [ending](absl::string_view name) {
    return absl::ConsumeSuffix(&name, kInfix) && absl::EndsWith(name, ending);
  });
}

absl::Status CheckCanWrite(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const Place place, Resolve(path));
  // A device is opened, not replaced: what its folder allows says nothing.
  const std::string place_to_write =
      place.special ? place.target : FolderOf(place.target);
  if (access(place_to_write.c_str(), W_OK) == 0) return absl::OkStatus();
  return SystemError(path, errno);
}

void RemoveTemporaryFiles() {
  for (const Slot& slot : g_slots) {
    if (slot.named) unlink(slot.name);
  }
}

}  // namespace weft
