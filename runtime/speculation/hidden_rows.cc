#include "runtime/speculation/hidden_rows.h"

#include <algorithm>

namespace weft {

HiddenRows::HiddenRows(int32_t slots, int64_t rows, int64_t columns)
    : rows_(rows),
      columns_(columns),
      positions_(slots * rows, -1),
      numbers_(slots * rows * columns) {}

int64_t HiddenRows::BytesFor(int64_t slots, int64_t rows, int64_t columns) {
  return slots * rows *
         (columns * static_cast<int64_t>(sizeof(float)) +
          static_cast<int64_t>(sizeof(int64_t)));
}

void HiddenRows::Clear(int32_t slot) {
  std::fill_n(positions_.begin() + slot * rows_, rows_, -1);
}

void HiddenRows::Set(int32_t slot, int64_t position, const float* row) {
  const int64_t place = slot * rows_ + position % rows_;
  positions_[place] = position;
  std::copy_n(row, columns_, numbers_.begin() + place * columns_);
}

const float* HiddenRows::Find(int32_t slot, int64_t position) const {
  if (position < 0) return nullptr;
  const int64_t place = slot * rows_ + position % rows_;
  return positions_[place] == position ? numbers_.data() + place * columns_
                                       : nullptr;
}

}  // namespace weft
