// Where in a text its last tokens have stood before.
//
// Idea: a hash table of pairs of tokens, each with the place behind its last
// occurrence; and for every place the one before with the same hash. A look-up
// follows that chain a few steps and keeps the place where most tokens agree;
// what the hash mixes up is found out by comparing. Both take some ten
// nanoseconds, and the memory is known before: two numbers for each token.
//
// Limit: of the places only the kMostLookedAt last are looked at.
//
// Not thread-safe. Allocates nothing after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace weft {

class TokenIndex {
 public:
  static constexpr int64_t kMostLookedAt = 16;
  // Tokens that are compared; what agrees in more is good enough.
  static constexpr int64_t kMostCompared = 32;

  // For texts of so many tokens.
  explicit TokenIndex(int64_t most_tokens);
  static int64_t BytesFor(int64_t most_tokens);

  // Forgets the text.
  void Clear();

  // The text is `tokens` now; it begins with what it was before. What lies
  // behind `most_tokens` is not found.
  void Extend(absl::Span<const int32_t> tokens);

  struct Match {
    int64_t end = 0;     // the place behind it, where its continuation begins
    int64_t tokens = 0;  // that agree: 2 or more; 0: none
  };
  // Where in `text`, which is that of Extend, the end of `history` stands with
  // something behind it; the last such place on ties.
  Match Find(absl::Span<const int32_t> text,
             absl::Span<const int32_t> history) const;

 private:
  uint32_t BucketOf(int32_t first, int32_t second) const;

  int64_t known_ = 0;            // places up to here are in the chains
  std::vector<int32_t> last_;    // by bucket; 0: none
  std::vector<int32_t> before_;  // by place; 0: none
};

}  // namespace weft
