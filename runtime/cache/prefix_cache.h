// Finds what of the KV cache holds already what a sequence begins with.
//
// Keys and values of a position depend on the tokens up to it and on nothing
// else, to the bit, so sequences that begin alike can share them (Kwon et al.
// 2023, see page_pool.h; Zheng et al., "SGLang: Efficient Execution of
// Structured Language Model Programs", 2024). A page is known by its tokens and
// by the entry of the page before it. Entries have numbers that are never given
// twice, so equal means equal all the way to the first token: a hash only says
// where to look, and sequences cannot be mixed up by two hashes that are alike.
//
// Whole pages are shared as they are. Of a page that agrees only up to some
// token, or is not full yet, a sequence takes a copy, to go on in after what
// agrees: some hundred kilobytes or a megabyte are copied sooner than one token
// runs. Only a page that is not full is ever written, by its one holder, behind
// the tokens that are known of it.
//
// Pages stay when the last sequence lets go, and are given up, the longest
// unused first, when others need the room. A sequence lets go of its last page
// first, so that a page is never given up before those that follow it. A page
// that is not full goes at once if another holds all its tokens.
//
// Limit: of the pages that begin with the same token after the same page, only
// the kMostLookedAt used last are looked at for a copy. Whole pages are always
// found.
//
// Not thread-safe; change it between steps only. Allocates nothing after
// construction but an error's message.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/cache/kv_cache.h"

namespace weft {

class PrefixCache {
 public:
  static constexpr int kMostLookedAt = 128;

  // `cache` must outlive this. From now on pages are given back by Release
  // only.
  explicit PrefixCache(KvCache* cache);

  // Bytes of memory for a cache of this many pages.
  static int64_t BytesFor(int64_t pages);

  struct Prefix {
    int64_t pages = 0;  // whole pages, from the first on
    int64_t idle = 0;   // of them, those that no sequence holds now
  };
  // What of `tokens` is there in whole pages, in this scope. At least the last
  // token is not counted in: its logits are wanted, so it must run.
  Prefix Find(uint64_t scope, absl::Span<const int32_t> tokens) const;

  // How many of `tokens`, without the last, are there in pages, whole or not:
  // what Attach and then AttachCopy would give to a slot that holds none.
  int64_t TokensThere(uint64_t scope, absl::Span<const int32_t> tokens) const;

  // Gives `slot` those that Find finds, after those that it holds, all of which
  // are in here and full. Returns the number of tokens in the new ones.
  absl::StatusOr<int64_t> Attach(int32_t slot, uint64_t scope,
                                 absl::Span<const int32_t> tokens);

  // After Attach: gives `slot` one more page, a copy of the one that agrees
  // with the most of what follows in `tokens`, without the last. Returns how
  // many tokens of it are valid; 0, and no page, if there is none, or no page
  // could be made free.
  absl::StatusOr<int64_t> AttachCopy(int32_t slot, uint64_t scope,
                                     absl::Span<const int32_t> tokens);

  // Says that the slot's keys and values of `tokens`, from the sequence's first
  // on, are there. All pages before the last one's must have been said to their
  // end, or come from Attach. If the last is full now and there is the same
  // page already, the slot gets that one and gives back its own.
  absl::Status Add(int32_t slot, uint64_t scope,
                   absl::Span<const int32_t> tokens);

  // Gives back all pages of a slot: those that were added stay, idle.
  absl::Status Release(int32_t slot);

  // Gives up idle pages until this many are free, if there are enough.
  void MakeFree(int64_t pages);

  // Gives up the idle pages of a scope.
  void Forget(uint64_t scope);

 private:
  // Neighbours in a list of pages; -1: none.
  struct Link {
    int32_t before = -1, after = -1;
  };
  struct Entry {
    uint64_t number = 0;  // 0: the page is not in here
    uint64_t parent = 0;  // number of the entry before; 0: none
    uint64_t scope = 0;
    int32_t size = 0;  // tokens that are known
    uint32_t whole_bucket = 0, first_bucket = 0;
    Link whole;  // in the bucket of all its tokens, if it is full
    Link first;  // in the bucket of its first token, the last used first
    Link age;    // older before, newer after
  };
  struct Match {
    int32_t page = -1;
    int64_t tokens = 0;
  };

  uint32_t BucketOf(uint64_t scope, uint64_t parent,
                    absl::Span<const int32_t> tokens) const;
  int32_t FindWhole(uint64_t scope, uint64_t parent,
                    absl::Span<const int32_t> tokens, uint32_t bucket) const;
  Match FindLongest(uint64_t scope, uint64_t parent,
                    absl::Span<const int32_t> tokens) const;
  Prefix Find(uint64_t scope, absl::Span<const int32_t> tokens,
              uint64_t* last) const;
  uint64_t ParentOf(int32_t slot, int64_t index) const;
  absl::Span<const int32_t> TokensOf(int32_t page) const;
  bool GiveUpCovered(int32_t page);
  void Remove(int32_t page);
  void PutFirst(std::vector<int32_t>* buckets, uint32_t bucket,
                Link Entry::*link, int32_t page);
  void TakeOut(std::vector<int32_t>* buckets, uint32_t bucket,
               Link Entry::*link, int32_t page);
  void Unlink(int32_t page);
  void MakeNewest(int32_t page);
  void Use(int32_t page);

  KvCache* cache_;
  std::vector<Entry> entries_;   // by page
  std::vector<int32_t> tokens_;  // [pages][kPageTokens]
  // First page, or -1; a power of two.
  std::vector<int32_t> whole_buckets_, first_buckets_;
  int32_t oldest_ = -1, newest_ = -1;
  uint64_t next_number_ = 1;
};

}  // namespace weft
