#include "runtime/cache/page_folder.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/output_file.h"
#include "base/status.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

}  // namespace

absl::StatusOr<std::shared_ptr<PageFolder>> PageFolder::Open(
    const std::string& folder, int64_t limit) {
  const auto error = [&](const char* what, const std::error_code& why) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot ", what, " the folder of cached prompts ", folder,
                     ": ", why.message()));
  };
  std::shared_ptr<PageFolder> result(new PageFolder(folder, limit));
  std::error_code why;
  // What is in it was made of people's texts.
  if (fs::create_directories(folder, why)) {
    fs::permissions(folder, fs::perms::owner_all, why);
  }
  if (why) return error("make", why);
  WEFT_RETURN_IF_ERROR(CheckCanWrite(absl::StrCat(folder, "/any", kEnding)));
  for (const auto& entry : fs::directory_iterator(folder, why)) {
    struct stat status;
    if (entry.path().extension() == kEnding &&
        lstat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      result->Note(entry.path().filename().string(), status.st_size,
                   absl::ToUnixNanos(absl::TimeFromTimespec(status.st_mtim)));
    }
  }
  if (why) return error("read", why);
  return result;
}

std::string PageFolder::PathOf(const std::string& name) const {
  return absl::StrCat(folder_, "/", name);
}

bool PageFolder::Has(const std::string& name) const {
  const absl::MutexLock lock(&mutex_);
  return files_.count(name) > 0;
}

void PageFolder::Note(const std::string& name, int64_t bytes, int64_t used) {
  const absl::MutexLock lock(&mutex_);
  Forget(name);
  files_[name] = {bytes, used};
  by_use_.insert({used, name});
  bytes_ += bytes;
  while (bytes_ > limit_ && !by_use_.empty()) {
    const std::string oldest = by_use_.begin()->second;
    Forget(oldest);
    std::error_code ignored;
    fs::remove(PathOf(oldest), ignored);
  }
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

void PageFolder::Forget(const std::string& name) {
  const auto it = files_.find(name);
  if (it == files_.end()) return;
  bytes_ -= it->second.bytes;
  by_use_.erase({it->second.used, name});
  files_.erase(it);
}

}  // namespace weft
