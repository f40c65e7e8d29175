#include "runtime/cache/page_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/output_file.h"
#include "base/status.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// Looking through the folder may take one part in so many of the time.
constexpr int kLookShare = 20;
// Of a full disk, what at least is made free at once, in files.
constexpr int64_t kFreeFiles = 4;

struct Opened {
  absl::Mutex mutex;
  std::map<std::string, std::weak_ptr<PageFolder>> folders
      ABSL_GUARDED_BY(mutex);
};
Opened& Folders() {
  static Opened* const opened = new Opened;
  return *opened;
}

absl::Status FolderError(const char* what, const std::string& folder,
                         const std::error_code& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot ", what, " the folder of cached prompts ", folder,
                   ": ", why.message()));
}

// What stands in a file's place and is none, such as a link to somebody's file.
// A folder goes only if nothing is in it.
void RemoveOther(const std::string& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
  S_ISDIR(status.st_mode) ? rmdir(path.c_str()) : unlink(path.c_str());
}

// For the owner alone: it was made of people's texts.
void TakeForOwner(const std::string& path, int64_t used) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return;
  const timespec time = absl::ToTimespec(absl::FromUnixNanos(used));
  const timespec times[2] = {time, time};
  futimens(file, times);
  fchmod(file, S_IRUSR | S_IWUSR);
  close(file);
}

}  // namespace

absl::StatusOr<std::shared_ptr<PageFolder>> PageFolder::Open(
    const std::string& folder, int64_t limit, absl::Duration pause) {
  std::shared_ptr<PageFolder> result(new PageFolder(folder, pause));
  WEFT_RETURN_IF_ERROR(result->Make());
  WEFT_RETURN_IF_ERROR(CheckCanWrite(absl::StrCat(folder, "/any", kEnding)));
  std::error_code why;
  const std::string place = fs::canonical(folder, why).string();
  if (why) return FolderError("open", folder, why);
  {
    Opened& opened = Folders();
    const absl::MutexLock lock(&opened.mutex);
    std::weak_ptr<PageFolder>& known = opened.folders[place];
    if (std::shared_ptr<PageFolder> there = known.lock(); there != nullptr) {
      result = std::move(there);
    } else {
      known = result;
      RemoveLeftBehind(folder, kEnding);
    }
  }
  WEFT_RETURN_IF_ERROR(result->Look());
  const absl::MutexLock lock(&result->mutex_);
  result->limit_ = limit;
  result->Shrink(limit);
  return result;
}

absl::Status PageFolder::Make() const {
  std::error_code why;
  // What is in it was made of people's texts.
  if (fs::create_directories(folder_, why)) {
    fs::permissions(folder_, fs::perms::owner_all, why);
  }
  if (why) return FolderError("make", folder_, why);
  return absl::OkStatus();
}

absl::Status PageFolder::Look() {
  const absl::Time begin = absl::Now();
  int64_t before;
  {
    const absl::MutexLock lock(&mutex_);
    before = noted_;
  }
  std::map<std::string, File> found;
  std::error_code why;
  // Without the lock: who asks for a page does not wait.
  for (const auto& entry : fs::directory_iterator(folder_, why)) {
    struct stat status;
    if (entry.path().extension() == kEnding &&
        lstat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      found[entry.path().filename().string()] = {
          status.st_size,
          absl::ToUnixNanos(absl::TimeFromTimespec(status.st_mtim)), before};
    }
  }
  const absl::MutexLock lock(&mutex_);
  const absl::Time end = absl::Now();
  look_again_ = end + (end - begin) * kLookShare;
  if (why) return FolderError("read", folder_, why);
  // What came meanwhile.
  for (const auto& [name, file] : files_) {
    if (file.noted > before) found[name] = file;
  }
  files_.swap(found);
  by_use_.clear();
  bytes_ = 0;
  for (const auto& [name, file] : files_) {
    by_use_.insert({file.used, name});
    bytes_ += file.bytes;
  }
  return absl::OkStatus();
}

void PageFolder::LookNowAndThen() {
  {
    const absl::MutexLock lock(&mutex_);
    if (looking_ || absl::Now() < look_again_) return;
    looking_ = true;
  }
  Look().IgnoreError();  // what is known stays
  const absl::MutexLock lock(&mutex_);
  looking_ = false;
  Shrink(limit_);
}

std::string PageFolder::PathOf(const std::string& name) const {
  return absl::StrCat(folder_, "/", name);
}

int64_t PageFolder::limit() const {
  const absl::MutexLock lock(&mutex_);
  return limit_;
}

bool PageFolder::Has(const std::string& name) const {
  const absl::MutexLock lock(&mutex_);
  return files_.count(name) > 0;
}

void PageFolder::Note(const std::string& name, int64_t bytes, int64_t used) {
  const absl::MutexLock lock(&mutex_);
  Add(name, bytes, used);
}

bool PageFolder::Writable() const {
  const absl::MutexLock lock(&mutex_);
  return paused_ == absl::ZeroDuration() || absl::Now() >= paused_until_;
}

absl::Status PageFolder::TryToWrite(const std::string& path,
                                    absl::string_view content) {
  absl::Status status = ReplaceFile(path, content, LeftBehind::kStays);
  std::error_code ignored;
  if (!status.ok() && !fs::exists(folder_, ignored)) {
    WEFT_RETURN_IF_ERROR(Make());
    WEFT_RETURN_IF_ERROR(Look());
    return ReplaceFile(path, content, LeftBehind::kStays);
  }
  if (!IsDiskFull(status)) return status;
  {
    const absl::MutexLock lock(&mutex_);
    if (files_.empty()) return status;
    Shrink(std::max<int64_t>(
        bytes_ - kFreeFiles * static_cast<int64_t>(content.size()), 0));
  }
  return ReplaceFile(path, content, LeftBehind::kStays);
}

bool PageFolder::Write(const std::string& name, absl::string_view content,
                       int64_t used, std::string* news) {
  if (!Writable()) return false;
  const std::string path = PathOf(name);
  RemoveOther(path);
  std::error_code ignored;
  // Somebody's, with something in it: this page is done without.
  if (fs::is_directory(path, ignored)) return false;
  const absl::Status status = TryToWrite(path, content);
  if (status.ok()) TakeForOwner(path, used);
  {
    const absl::MutexLock lock(&mutex_);
    if (!status.ok()) {
      const bool first = paused_ == absl::ZeroDuration();
      // At least something, so that it is known to have failed.
      paused_ = first ? std::max(pause_, absl::Nanoseconds(1))
                      : std::min(2 * paused_, kLongestPause);
      paused_until_ = absl::Now() + paused_;
      if (first) {
        *news =
            absl::StrCat("prompts are not cached for now: ", status.message(),
                         ": it is tried again later");
      }
      return false;
    }
    if (paused_ > absl::ZeroDuration()) {
      *news = absl::StrCat("prompts are cached again: ", folder_);
    }
    paused_ = absl::ZeroDuration();
    Add(name, static_cast<int64_t>(content.size()), used);
  }
  LookNowAndThen();
  return true;
}

bool PageFolder::Remove(const std::string& name) {
  const absl::MutexLock lock(&mutex_);
  Forget(name);
  std::error_code ignored;
  return fs::remove(PathOf(name), ignored);
}

int64_t PageFolder::bytes() const {
  const absl::MutexLock lock(&mutex_);
  return bytes_;
}

void PageFolder::Add(const std::string& name, int64_t bytes, int64_t used) {
  Forget(name);
  files_[name] = {bytes, used, ++noted_};
  by_use_.insert({used, name});
  bytes_ += bytes;
  Shrink(limit_);
}

void PageFolder::Forget(const std::string& name) {
  const auto it = files_.find(name);
  if (it == files_.end()) return;
  bytes_ -= it->second.bytes;
  by_use_.erase({it->second.used, name});
  files_.erase(it);
}

void PageFolder::Shrink(int64_t bytes) {
  while (bytes_ > bytes && !by_use_.empty()) {
    const std::string oldest = by_use_.begin()->second;
    Forget(oldest);
    std::error_code ignored;
    fs::remove(PathOf(oldest), ignored);
  }
}

}  // namespace weft
