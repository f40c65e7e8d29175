// The last rows that a model made of its tokens, of each of its sequences: what
// a next-token block reads beside the token that follows.
//
// By position, so nothing need be told when a sequence takes back tokens that
// were only tried: their rows are overwritten before anyone asks for them.
//
// Not thread-safe. Allocates nothing after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace weft {

class HiddenRows {
 public:
  // How many rows more than guesses of a step are kept: that of the token
  // before the step's, and of its first.
  static constexpr int64_t kBehind = 2;

  HiddenRows() = default;
  // `rows` of each slot, of so many columns. Requires that the product fits
  // (BytesFor).
  HiddenRows(int32_t slots, int64_t rows, int64_t columns);
  static int64_t BytesFor(int64_t slots, int64_t rows, int64_t columns);

  int64_t rows() const { return rows_; }

  // Another text is in the slot.
  void Clear(int32_t slot);
  void Set(int32_t slot, int64_t position, const float* row);
  // Null where it is not known (any more). Valid until that row is set.
  const float* Find(int32_t slot, int64_t position) const;

 private:
  int64_t rows_ = 0, columns_ = 0;
  std::vector<int64_t> positions_;  // by slot and place; -1: nothing
  std::vector<float> numbers_;
};

}  // namespace weft
