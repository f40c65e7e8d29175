// Pages of keys and values in files, so that prompts which were run once need
// not run again after a restart.
//
// Idea: what a page holds depends on the plan, on the tokens before it and on
// its own, and on nothing else, to the bit. So a file that is named by a hash
// of these holds one page for whoever may ask for it: a key is 128 bits over
// the plan's identity, the key of the page before, and the page's tokens. A
// file also has its tokens and a checksum of everything in it: one that was
// damaged, or belongs to others, is removed, and costs the time of running the
// tokens again.
//
// Files are written by a thread of the store, which drops what it cannot keep
// up with; the ones that were not used for longest go when they are too many
// (page_folder.h). A page is of no use without those before it, so each counts
// as used some time before its predecessor; files have these times, too.
//
// The states by sequence behind a page are kept likewise, by a store of their
// own: its "pages" are what a slot holds.
//
// Layout of a file, little-endian: the 8 bytes "weftpage", the key (two u64),
// bytes of the page (u64), kPageTokens tokens (i32), the page, and XXH3-128 of
// all before it (https://github.com/Cyan4973/xxHash).
//
// Not thread-safe: for one scheduler.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "runtime/cache/page_folder.h"

namespace weft {

struct PageStoreOptions {
  std::shared_ptr<PageFolder> folder;  // not null
  // Of the plan and its weights: whatever results depend on.
  std::string identity;
  int64_t page_bytes = 0;  // of all states together
  int waiting = 16;        // pages that may wait to be written
  // Told, in one line, of what went wrong: nothing is lost but time.
  std::function<void(const std::string& line)> log;
};

class PageStore {
 public:
  using Key = std::pair<uint64_t, uint64_t>;

  // Memory that a store will take for itself.
  static int64_t BytesFor(int64_t page_bytes, int waiting);

  explicit PageStore(const PageStoreOptions& options);
  // Waits until what was to be written is.
  ~PageStore();

  // Of the page with these kPageTokens tokens behind that of `before`; of the
  // first page: Key().
  Key KeyOf(const Key& before, absl::Span<const int32_t> tokens) const;

  // Whether there is a file, by what is known without looking into it.
  bool Has(const Key& key) const;

  // Calls `take` with the page of this key and these tokens: false if there is
  // none, or it is not what it should be. `index`: pages before it.
  bool Read(const Key& key, int64_t index, absl::Span<const int32_t> tokens,
            const std::function<void(const uint8_t* page)>& take);

  // Whether Read would give the page; what is damaged is removed.
  bool Check(const Key& key, int64_t index, absl::Span<const int32_t> tokens);

  // Has a page written if it is not there: `fill` makes it, at once. Nothing
  // when too many wait.
  void Write(const Key& key, int64_t index, absl::Span<const int32_t> tokens,
             const std::function<void(uint8_t* page)>& fill);

  // How many pages were read, written and found damaged.
  struct Stats {
    int64_t read = 0, written = 0, damaged = 0;
  };
  Stats GetStats() const;

 private:
  struct Waiting {
    Key key;
    int64_t index;
    std::vector<uint8_t> bytes;  // of the whole file
  };

  std::string NameOf(const Key& key) const;
  int64_t FileBytes() const;
  void WriteAll();
  void Log(const std::string& line) const;

  const PageStoreOptions options_;
  const uint64_t seed_;        // of keys
  std::vector<uint8_t> file_;  // that is read

  mutable absl::Mutex mutex_;
  std::vector<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);  // a ring
  int first_ ABSL_GUARDED_BY(mutex_) = 0;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  std::thread writer_;
};

}  // namespace weft
