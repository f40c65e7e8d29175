#include "runtime/cache/page_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

bool ReadAll(const std::string& path, std::vector<uint8_t>* bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
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
    // So that those which are used stay.
    if (at == bytes->size()) futimens(file, nullptr);
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
  struct Found {
    fs::file_time_type used;
    File file;
  };
  std::vector<Found> found;
  for (const auto& entry : fs::directory_iterator(options_.folder, error)) {
    std::error_code ignored;
    if (entry.path().extension() != kEnding || entry.is_symlink(ignored) ||
        !entry.is_regular_file(ignored)) {
      continue;
    }
    const auto bytes = entry.file_size(ignored);
    if (ignored) continue;
    const auto used = entry.last_write_time(ignored);
    found.push_back(
        {used,
         {entry.path().filename().string(), static_cast<int64_t>(bytes)}});
  }
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the folder of cached prompts ",
                     options_.folder, ": ", error.message()));
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.used < b.used; });
  const absl::MutexLock lock(&mutex_);
  for (const Found& one : found) Remember(one.file.name, one.file.bytes);
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
  return by_name_.count(NameOf(key)) > 0;
}

bool PageStore::Read(const Key& key, absl::Span<const int32_t> tokens,
                     const std::function<void(const uint8_t* page)>& take) {
  const std::string name = NameOf(key);
  const std::string path = absl::StrCat(options_.folder, "/", name);
  const int64_t size = FileBytes() - kSumBytes;
  const Head want = HeadOf(key, options_.page_bytes, tokens);
  const bool whole = ReadAll(path, &file_);
  const XXH128_canonical_t sum = SumOf(file_.data(), size);
  const bool good = whole &&
                    std::memcmp(&want, file_.data(), sizeof(want)) == 0 &&
                    std::memcmp(&sum, file_.data() + size, kSumBytes) == 0;
  {
    const absl::MutexLock lock(&mutex_);
    const auto it = by_name_.find(name);
    if (good) {
      ++stats_.read;
      if (it != by_name_.end()) {
        files_.splice(files_.end(), files_, it->second);
      }
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

void PageStore::Write(const Key& key, absl::Span<const int32_t> tokens,
                      const std::function<void(uint8_t* page)>& fill) {
  const absl::MutexLock lock(&mutex_);
  if (closed_ || failed_ || count_ == kWaiting ||
      FileBytes() > options_.limit || by_name_.count(NameOf(key)) > 0) {
    return;
  }
  for (int i = 0; i < count_; ++i) {
    if (waiting_[(first_ + i) % kWaiting].key == key) return;
  }
  Waiting& waiting = waiting_[(first_ + count_) % kWaiting];
  waiting.key = key;
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
    const absl::Status status =
        WriteFile(absl::StrCat(options_.folder, "/", name),
                  {reinterpret_cast<const char*>(waiting.bytes.data()),
                   static_cast<size_t>(size)});
    mutex_.Lock();
    first_ = (first_ + 1) % kWaiting;
    --count_;
    if (status.ok()) {
      Remember(name, size);
      ++stats_.written;
    } else {
      failed_ = true;
      Log(absl::StrCat("prompts are cached no more: ", status.message()));
    }
  }
}

void PageStore::Remember(const std::string& name, int64_t bytes) {
  Forget(name);
  files_.push_back({name, bytes});
  by_name_[name] = std::prev(files_.end());
  stats_.bytes += bytes;
  while (stats_.bytes > options_.limit && !files_.empty()) {
    const std::string oldest = files_.front().name;
    Forget(oldest);
    std::error_code ignored;
    fs::remove(absl::StrCat(options_.folder, "/", oldest), ignored);
  }
}

void PageStore::Forget(const std::string& name) {
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) return;
  stats_.bytes -= it->second->bytes;
  files_.erase(it->second);
  by_name_.erase(it);
}

PageStore::Stats PageStore::GetStats() const {
  const absl::MutexLock lock(&mutex_);
  return stats_;
}

void PageStore::Log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

}  // namespace weft
