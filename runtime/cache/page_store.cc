#include "runtime/cache/page_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/output_file.h"
#include "base/status.h"
#include "ops/kernels/kernel.h"
#include "xxhash.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[] = "weftpage";
constexpr char kEnding[] = ".page";

struct Head {
  char magic[8];
  uint64_t key[2];
  uint64_t page_bytes;
  int32_t tokens[kPageTokens];
};
constexpr int64_t kSumBytes = sizeof(XXH128_canonical_t);

Head HeadOf(const PageStore::Key& key, int64_t page_bytes,
            absl::Span<const int32_t> tokens) {
  Head head = {};
  std::memcpy(head.magic, kMagic, sizeof(head.magic));
  head.key[0] = key.first;
  head.key[1] = key.second;
  head.page_bytes = static_cast<uint64_t>(page_bytes);
  std::copy(tokens.begin(), tokens.end(), head.tokens);
  return head;
}

XXH128_canonical_t SumOf(const uint8_t* bytes, int64_t size) {
  XXH128_canonical_t sum;
  XXH128_canonicalFromHash(&sum,
                           XXH3_128bits(bytes, static_cast<size_t>(size)));
  return sum;
}

// When page `index` of a text that is used now counts as used.
int64_t UseOf(int64_t index) {
  constexpr int64_t kBetween = 1'000'000'000;
  return absl::GetCurrentTimeNanos() - index * kBetween;
}

timespec AsTime(int64_t nanoseconds) {
  return absl::ToTimespec(absl::FromUnixNanos(nanoseconds));
}

bool ReadAll(const std::string& path, int64_t used,
             std::vector<uint8_t>* bytes) {
  const int file =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return false;
  struct stat status;
  size_t at = 0;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
      status.st_size == static_cast<off_t>(bytes->size())) {
    ssize_t got = 0;
    do {
      got = read(file, bytes->data() + at, bytes->size() - at);
      if (got > 0) at += static_cast<size_t>(got);
    } while (got > 0 && at < bytes->size());
    const timespec times[2] = {AsTime(used), AsTime(used)};
    futimens(file, times);
  }
  close(file);
  return at == bytes->size();
}

}  // namespace

int64_t PageStore::BytesFor(int64_t page_bytes) {
  return (kWaiting + 1) *
         (static_cast<int64_t>(sizeof(Head)) + page_bytes + kSumBytes);
}

PageStore::PageStore(const PageStoreOptions& options)
    : options_(options),
      seed_(XXH3_64bits(options.identity.data(), options.identity.size())),
      file_(FileBytes()),
      waiting_(kWaiting) {
  for (Waiting& waiting : waiting_) waiting.bytes.resize(FileBytes());
}

int64_t PageStore::FileBytes() const {
  return static_cast<int64_t>(sizeof(Head)) + options_.page_bytes + kSumBytes;
}

absl::StatusOr<std::unique_ptr<PageStore>> PageStore::Open(
    const PageStoreOptions& options) {
  std::unique_ptr<PageStore> store(new PageStore(options));
  WEFT_RETURN_IF_ERROR(store->Look());
  store->writer_ = std::thread([raw = store.get()] { raw->WriteAll(); });
  return store;
}

PageStore::~PageStore() {
  {
    const absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  if (writer_.joinable()) writer_.join();
}

absl::Status PageStore::Look() {
  std::error_code error;
  // What is in it was made of people's texts.
  if (fs::create_directories(options_.folder, error)) {
    fs::permissions(options_.folder, fs::perms::owner_all, error);
  }
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot make the folder of cached prompts ",
                     options_.folder, ": ", error.message()));
  }
  WEFT_RETURN_IF_ERROR(CheckCanWrite(options_.folder + "/any" + kEnding));
  const absl::MutexLock lock(&mutex_);
  for (const auto& entry : fs::directory_iterator(options_.folder, error)) {
    struct stat status;
    if (entry.path().extension() == kEnding &&
        lstat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      Remember(entry.path().filename().string(),
               {status.st_size,
                absl::ToUnixNanos(absl::TimeFromTimespec(status.st_mtim))});
    }
  }
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the folder of cached prompts ",
                     options_.folder, ": ", error.message()));
  }
  return absl::OkStatus();
}

PageStore::Key PageStore::KeyOf(const Key& before,
                                absl::Span<const int32_t> tokens) const {
  uint64_t bytes[2 + kPageTokens / 2] = {before.first, before.second};
  std::memcpy(bytes + 2, tokens.data(), tokens.size() * sizeof(int32_t));
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, sizeof(bytes), seed_);
  return {hash.high64, hash.low64};
}

std::string PageStore::NameOf(const Key& key) const {
  return absl::StrFormat("%016x-%016x%016x%s", seed_, key.first, key.second,
                         kEnding);
}

bool PageStore::Has(const Key& key) const {
  const absl::MutexLock lock(&mutex_);
  return files_.count(NameOf(key)) > 0;
}

bool PageStore::Read(const Key& key, int64_t index,
                     absl::Span<const int32_t> tokens,
                     const std::function<void(const uint8_t* page)>& take) {
  const std::string name = NameOf(key);
  const std::string path = absl::StrCat(options_.folder, "/", name);
  const int64_t size = FileBytes() - kSumBytes;
  const Head want = HeadOf(key, options_.page_bytes, tokens);
  const int64_t used = UseOf(index);
  const bool whole = ReadAll(path, used, &file_);
  const XXH128_canonical_t sum = SumOf(file_.data(), size);
  const bool good = whole &&
                    std::memcmp(&want, file_.data(), sizeof(want)) == 0 &&
                    std::memcmp(&sum, file_.data() + size, kSumBytes) == 0;
  {
    const absl::MutexLock lock(&mutex_);
    if (good) {
      ++stats_.read;
      Remember(name, {FileBytes(), used});
    } else {
      Forget(name);
      std::error_code ignored;
      // Another process may have removed it: then it is no damage.
      if (fs::remove(path, ignored)) {
        ++stats_.damaged;
        Log(absl::StrCat("a cached prompt was damaged and is run again: ",
                         path));
      }
    }
  }
  if (good) take(file_.data() + sizeof(Head));
  return good;
}

void PageStore::Write(const Key& key, int64_t index,
                      absl::Span<const int32_t> tokens,
                      const std::function<void(uint8_t* page)>& fill) {
  const absl::MutexLock lock(&mutex_);
  if (closed_ || failed_ || count_ == kWaiting ||
      FileBytes() > options_.limit || files_.count(NameOf(key)) > 0) {
    return;
  }
  for (int i = 0; i < count_; ++i) {
    if (waiting_[(first_ + i) % kWaiting].key == key) return;
  }
  Waiting& waiting = waiting_[(first_ + count_) % kWaiting];
  waiting.key = key;
  waiting.index = index;
  const Head head = HeadOf(key, options_.page_bytes, tokens);
  std::memcpy(waiting.bytes.data(), &head, sizeof(head));
  fill(waiting.bytes.data() + sizeof(head));
  ++count_;
}

void PageStore::WriteAll() {
  const absl::MutexLock lock(&mutex_);
  while (true) {
    mutex_.Await(absl::Condition(
        +[](PageStore* store) ABSL_NO_THREAD_SAFETY_ANALYSIS {
          return store->count_ > 0 || store->closed_;
        },
        this));
    if (count_ == 0) return;
    // Stays in the ring until it is written, so nobody fills it meanwhile.
    Waiting& waiting = waiting_[first_];
    const std::string name = NameOf(waiting.key);
    const int64_t size = FileBytes();
    mutex_.Unlock();
    const XXH128_canonical_t sum =
        SumOf(waiting.bytes.data(), size - kSumBytes);
    std::memcpy(waiting.bytes.data() + size - kSumBytes, &sum, kSumBytes);
    const std::string path = absl::StrCat(options_.folder, "/", name);
    const absl::Status status =
        WriteFile(path, {reinterpret_cast<const char*>(waiting.bytes.data()),
                         static_cast<size_t>(size)});
    const int64_t used = UseOf(waiting.index);
    const timespec times[2] = {AsTime(used), AsTime(used)};
    if (status.ok()) {
      utimensat(AT_FDCWD, path.c_str(), times, 0);
      chmod(path.c_str(), S_IRUSR | S_IWUSR);  // people's texts
    }
    mutex_.Lock();
    first_ = (first_ + 1) % kWaiting;
    --count_;
    if (status.ok()) {
      Remember(name, {size, used});
      ++stats_.written;
    } else {
      failed_ = true;
      Log(absl::StrCat("prompts are cached no more: ", status.message()));
    }
  }
}

void PageStore::Remember(const std::string& name, const File& file) {
  Forget(name);
  files_[name] = file;
  by_use_.insert({file.used, name});
  stats_.bytes += file.bytes;
  while (stats_.bytes > options_.limit && !by_use_.empty()) {
    const std::string oldest = by_use_.begin()->second;
    Forget(oldest);
    std::error_code ignored;
    fs::remove(absl::StrCat(options_.folder, "/", oldest), ignored);
  }
}

void PageStore::Forget(const std::string& name) {
  const auto it = files_.find(name);
  if (it == files_.end()) return;
  stats_.bytes -= it->second.bytes;
  by_use_.erase({it->second.used, name});
  files_.erase(it);
}

PageStore::Stats PageStore::GetStats() const {
  const absl::MutexLock lock(&mutex_);
  return stats_;
}

void PageStore::Log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

}  // namespace weft
