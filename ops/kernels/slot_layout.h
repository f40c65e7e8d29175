// How states by sequence lie in their slots. Static functions only, since files
// compiled for one instruction set include this.
//
// window    f32[rows][columns]: the last rows that were seen, the newest last
// matrices  of each head a matrix of keys x values, in panels of 16 values:
//           [heads][panels][keys][16], zeros behind the last value. All tokens
//           of a step pass over one panel at a time, which lies in one piece
//           and fits the first cache.
//
// A sequence's first row (position 0) begins from zeros, whatever its slot
// holds: who gives out a slot need not clear it.
#pragma once

#include <stdint.h>

namespace weft {

constexpr int kMatrixPanel = 16;

// Of one head's matrix.
static inline int64_t MatrixFloats(int64_t keys, int64_t values) {
  return (values + kMatrixPanel - 1) / kMatrixPanel * kMatrixPanel * keys;
}

static inline int64_t MatrixElement(int64_t keys, int64_t key, int64_t value) {
  return (value / kMatrixPanel * keys + key) * kMatrixPanel +
         value % kMatrixPanel;
}

}  // namespace weft
