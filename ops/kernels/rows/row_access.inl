// Helpers of the row kernels.
#pragma once

#include "ops/kernels/rows/rows.h"
#include "ops/kernels/vector.h"

// Lambdas need the attribute too, or accumulators go through memory.
#define WEFT_LAMBDA __attribute__((always_inline))

namespace weft {
namespace {

WEFT_INLINE const float* RowOf(ConstRows m, int64_t row) {
  return reinterpret_cast<const float*>(
      reinterpret_cast<const uint8_t*>(m.data) + row * m.row_bytes);
}

WEFT_INLINE float* RowOf(MutableRows m, int64_t row) {
  return reinterpret_cast<float*>(reinterpret_cast<uint8_t*>(m.data) +
                                  row * m.row_bytes);
}

// All ones in lanes below n.
WEFT_INLINE I32x16 LanesBelow(int n) {
  const I32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return lane < n;
}

// Calls visit(offset, lanes) for each 16 columns; lanes is 16 but at the end.
// Visitors load and store through LoadLanes and StoreLanes, which the compiler
// turns into plain moves where lanes is the constant 16.
template <class Visit>
WEFT_INLINE void ForColumns(int64_t columns, Visit visit) {
  int64_t i = 0;
  for (; i + 16 <= columns; i += 16) visit(i, 16);
  if (i < columns) visit(i, static_cast<int>(columns - i));
}

WEFT_INLINE F32x16 LoadLanes(const float* p, int lanes) {
  return lanes == 16 ? Load(p) : LoadPart(p, lanes);
}

WEFT_INLINE void StoreLanes(float* p, F32x16 v, int lanes) {
  if (lanes == 16) {
    Store(p, v);
  } else {
    StorePart(p, v, lanes);
  }
}

}  // namespace
}  // namespace weft
