// Which states by sequence are kept (KvCache::Save), and of what tokens: so
// that a prompt that begins like another goes on from the last checkpoint that
// is on its way.
//
// Keys and values of a prompt's beginning are found token by token
// (prefix_cache.h); a recurrent state is one of all tokens before it and cannot
// be cut, so copies are made at positions that are likely to be asked for:
// before a prompt's last token, at the end of a text, and every so many tokens.
// When all places are taken, the one that was not used for the longest time
// goes.
//
// Not thread-safe. Allocates nothing after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/cache/kv_cache.h"

namespace weft {

class Checkpoints {
 public:
  // Between two in a long text.
  static constexpr int64_t kInterval = 512;
  // Fewer tokens than these are not worth one.
  static constexpr int64_t kLeast = 64;

  // `cache` must outlive this. `most_tokens`: of a sequence.
  Checkpoints(KvCache* cache, int64_t most_tokens);

  // Whether there are any to take.
  bool any() const { return !entries_.empty(); }

  // Where a sequence with `computed` tokens should next be at the end of a
  // step, above `computed`. Its last checkpoint was at `last`, its prompt has
  // `prompt` tokens (0: it has none).
  int64_t NextAfter(int64_t computed, int64_t last, int64_t prompt) const;

  // Keeps the slot's states, which are those of `tokens`.
  void Add(int32_t slot, uint64_t scope, absl::Span<const int32_t> tokens);

  // How many tokens of `tokens` the longest one stands behind, at most `most`;
  // 0: none.
  int64_t Find(uint64_t scope, absl::Span<const int32_t> tokens,
               int64_t most) const;
  // Gives `slot` the states of these tokens, which Find has found.
  void Restore(uint64_t scope, absl::Span<const int32_t> tokens, int32_t slot);

  // Gives up all of a scope.
  void Forget(uint64_t scope);

 private:
  struct Entry {
    uint64_t scope = 0;
    uint64_t used = 0;  // when; 0: it is free
    std::vector<int32_t> tokens;
  };

  int FindExactly(uint64_t scope, absl::Span<const int32_t> tokens) const;

  KvCache* cache_;
  std::vector<Entry> entries_;  // by checkpoint of the cache
  uint64_t clock_ = 0;
};

}  // namespace weft
