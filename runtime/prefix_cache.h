// Finds pages of the KV cache that already hold what a sequence begins with.
//
// Keys and values of a position depend on the tokens up to it and on nothing
// else, to the bit, so whole pages can be shared by all sequences that begin
// alike (Kwon et al. 2023, see page_pool.h; Zheng et al., "SGLang: Efficient
// Execution of Structured Language Model Programs", 2024). A page is known by
// its 64 tokens and by the entry of the page before it. Entries have numbers
// that are never given twice, so equal means equal all the way to the first
// token: a hash only says where to look, and sequences cannot be mixed up by
// two hashes that are alike.
//
// Pages stay when the last sequence lets go, and are given up, the longest
// unused first, when others need the room. A sequence lets go of its last page
// first, so that a page is never given up before those that follow it.
//
// Not thread-safe; change it between steps only. Allocates nothing after
// construction but an error's message.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/kv_cache.h"

namespace weft {

class PrefixCache {
 public:
  // `cache` must outlive this. From now on pages are given back by Release
  // only.
  explicit PrefixCache(KvCache* cache);

  // Bytes of memory for a cache of this many pages.
  static int64_t BytesFor(int64_t pages);

  struct Prefix {
    int64_t pages = 0;  // whole pages, from the first on
    int64_t idle = 0;   // of them, those that no sequence holds now
  };
  // What of `tokens` is there, in this scope. At least the last token is not
  // counted in: its logits are wanted, so it must run.
  Prefix Find(uint64_t scope, absl::Span<const int32_t> tokens) const;

  // Gives `slot` those that Find finds, after those that it holds, all of which
  // are in here. Returns the number of tokens in the new ones.
  absl::StatusOr<int64_t> Attach(int32_t slot, uint64_t scope,
                                 absl::Span<const int32_t> tokens);

  // Says that the slot's last whole page is that of the end of `tokens`, all
  // tokens of the sequence so far: a multiple of kPageTokens, above 0. Those
  // before must have been said, or come from Attach. If the same page is there
  // already, the slot gets that one and gives back its own.
  absl::Status Add(int32_t slot, uint64_t scope,
                   absl::Span<const int32_t> tokens);

  // Gives back all pages of a slot: those that were added stay, idle.
  absl::Status Release(int32_t slot);

  // Gives up idle pages until this many are free, if there are enough.
  void MakeFree(int64_t pages);

  // Gives up the idle pages of a scope.
  void Forget(uint64_t scope);

 private:
  struct Entry {
    uint64_t number = 0;  // 0: the page is not in here
    uint64_t parent = 0;  // number of the entry before; 0: none
    uint64_t scope = 0;
    uint32_t bucket = 0;
    int32_t next_in_bucket = -1;
    int32_t older = -1, newer = -1;  // in the order of last use
  };

  int32_t FindPage(uint64_t scope, uint64_t parent,
                   absl::Span<const int32_t> tokens, uint32_t bucket) const;
  uint32_t BucketOf(uint64_t scope, uint64_t parent,
                    absl::Span<const int32_t> tokens) const;
  void Remove(int32_t page);
  void Unlink(int32_t page);
  void MakeNewest(int32_t page);

  KvCache* cache_;
  std::vector<Entry> entries_;    // by page
  std::vector<int32_t> tokens_;   // [pages][kPageTokens]
  std::vector<int32_t> buckets_;  // first page, or -1; a power of two
  int32_t oldest_ = -1, newest_ = -1;
  uint64_t next_number_ = 1;
};

}  // namespace weft
