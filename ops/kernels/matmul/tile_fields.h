// What the inner loops of byte products read of quantised rows
// (quantized_rows.h). Unnamed namespace as in all that files of one instruction
// set include (vector.h).
#pragma once

#include <stdint.h>

#include "ops/kernels/vector.h"

namespace weft {
namespace {

// The fields of some rows of a tile in one block (quantized_rows.h).
struct TileFields {
  const int8_t* q;  // rows 32 apart
  const float* scale;
  const float* scaled_sum;
  const int32_t* sum_low;
  const int32_t* sum_high;
};

WEFT_INLINE TileFields FieldsOf(const uint8_t* x, int tile_rows,
                                int first_row) {
  TileFields fields;
  fields.q = reinterpret_cast<const int8_t*>(x) + 32 * first_row;
  fields.scale = reinterpret_cast<const float*>(x + 32 * tile_rows) + first_row;
  fields.scaled_sum = fields.scale + tile_rows;
  fields.sum_low =
      reinterpret_cast<const int32_t*>(fields.scaled_sum + tile_rows);
  fields.sum_high = fields.sum_low + tile_rows;
  return fields;
}

// The sum of x that scale h of a block has to do with.
template <int per_32>
WEFT_INLINE int32_t SumOf(const TileFields& x, int m, int h) {
  if (per_32 == 1) return x.sum_low[m] + x.sum_high[m];
  return h == 0 ? x.sum_low[m] : x.sum_high[m];
}

// What minus the minimum of scale h is multiplied with.
template <int per_32>
WEFT_INLINE float ScaledSumOf(const TileFields& x, int m, int h) {
  return per_32 == 1 ? x.scaled_sum[m]
                     : x.scale[m] * static_cast<float>(SumOf<2>(x, m, h));
}

}  // namespace
}  // namespace weft
