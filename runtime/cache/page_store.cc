#include "runtime/cache/page_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ops/kernels/kernel.h"
#include "xxhash.h"

namespace weft {
namespace {

constexpr char kMagic[] = "weftpage";

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
    const timespec time = absl::ToTimespec(absl::FromUnixNanos(used));
    const timespec times[2] = {time, time};
    futimens(file, times);
  }
  close(file);
  return at == bytes->size();
}

}  // namespace

int64_t PageStore::BytesFor(int64_t page_bytes, int waiting) {
  return (waiting + 1) *
         (static_cast<int64_t>(sizeof(Head)) + page_bytes + kSumBytes);
}

PageStore::PageStore(const PageStoreOptions& options)
    : options_(options),
      seed_(XXH3_64bits(options.identity.data(), options.identity.size())),
      file_(FileBytes()),
      waiting_(options.waiting) {
  for (Waiting& waiting : waiting_) waiting.bytes.resize(FileBytes());
  writer_ = std::thread([this] { WriteAll(); });
}

int64_t PageStore::FileBytes() const {
  return static_cast<int64_t>(sizeof(Head)) + options_.page_bytes + kSumBytes;
}

PageStore::~PageStore() {
  {
    const absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  if (writer_.joinable()) writer_.join();
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
                         PageFolder::kEnding);
}

bool PageStore::Has(const Key& key) const {
  return options_.folder->Has(NameOf(key));
}

bool PageStore::Check(const Key& key, int64_t index,
                      absl::Span<const int32_t> tokens) {
  const std::string name = NameOf(key);
  const std::string path = options_.folder->PathOf(name);
  const int64_t size = FileBytes() - kSumBytes;
  const Head want = HeadOf(key, options_.page_bytes, tokens);
  const int64_t used = UseOf(index);
  const bool whole = ReadAll(path, used, &file_);
  const XXH128_canonical_t sum = SumOf(file_.data(), size);
  const bool good = whole &&
                    std::memcmp(&want, file_.data(), sizeof(want)) == 0 &&
                    std::memcmp(&sum, file_.data() + size, kSumBytes) == 0;
  if (good) options_.folder->Note(name, FileBytes(), used);
  // Another process may have removed it: then it is no damage.
  const bool damaged = !good && options_.folder->Remove(name);
  if (damaged) {
    Log(absl::StrCat("a cached prompt was damaged and is run again: ", path));
  }
  {
    const absl::MutexLock lock(&mutex_);
    stats_.damaged += damaged ? 1 : 0;
  }
  return good;
}

bool PageStore::Read(const Key& key, int64_t index,
                     absl::Span<const int32_t> tokens,
                     const std::function<void(const uint8_t* page)>& take) {
  if (!Check(key, index, tokens)) return false;
  take(file_.data() + sizeof(Head));
  const absl::MutexLock lock(&mutex_);
  ++stats_.read;
  return true;
}

void PageStore::Write(const Key& key, int64_t index,
                      absl::Span<const int32_t> tokens,
                      const std::function<void(uint8_t* page)>& fill) {
  const absl::MutexLock lock(&mutex_);
  if (closed_ || count_ == options_.waiting ||
      FileBytes() > options_.folder->limit() || Has(key) ||
      !options_.folder->Writable()) {
    return;
  }
  for (int i = 0; i < count_; ++i) {
    if (waiting_[(first_ + i) % options_.waiting].key == key) return;
  }
  Waiting& waiting = waiting_[(first_ + count_) % options_.waiting];
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
    std::string news;
    const bool written = options_.folder->Write(
        name,
        {reinterpret_cast<const char*>(waiting.bytes.data()),
         static_cast<size_t>(size)},
        UseOf(waiting.index), &news);
    if (!news.empty()) Log(news);
    mutex_.Lock();
    first_ = (first_ + 1) % options_.waiting;
    --count_;
    if (written) ++stats_.written;
  }
}

PageStore::Stats PageStore::GetStats() const {
  const absl::MutexLock lock(&mutex_);
  return stats_;
}

void PageStore::Log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

}  // namespace weft
