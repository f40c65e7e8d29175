// Activations quantised per row in blocks of 32 ("q8r"): the one format that
// every integer matmul kernel reads.
//
// A block of 32 values x becomes a scale s = max|x| / 127 (f32) and 32 integers
// q = round(x / s), ties to even, in [-127, 127]. With them stand s * sum(q),
// which weight types with a minimum need, and the two sums of 16 integers,
// which weight types with an offset need (types that scale every 16 use them
// one by one).
//
// Memory: tiles of 6 rows; the last tile has what remains (1 to 6 rows). A tile
// of R rows is, for each block of 32 columns in order:
//   int8   q[R][32]
//   float  scale[R]
//   float  scaled_sum[R]     s * (sum[0] + sum[1]), rounded once
//   int32  sum_low[R]        sum of q[0..15]
//   int32  sum_high[R]       sum of q[16..31]
// so 48 bytes per row and block whatever R, and each field of a tile is
// contiguous for broadcasts. A matrix of M rows and K columns takes M * K / 32
// * 48 bytes.
//
// A block with a NaN or an infinity gets a NaN scale, so it is not lost.
// Included by per-instruction-set files: unnamed namespace, see vector.h.
#pragma once

#include "ops/kernels/vector.h"

namespace weft {
namespace {

constexpr int kQuantizedRowsTile = 6;
constexpr int kQuantizedRowsBlockBytes = 48;

// The fields of one row in one block.
struct QuantizedBlock {
  int8_t* q;
  float* scale;
  float* scaled_sum;
  int32_t* sum_low;
  int32_t* sum_high;
};

// Rows in the tile that holds `row`, of a matrix of `rows` rows.
WEFT_INLINE int QuantizedTileRows(int64_t row, int64_t rows) {
  const int64_t left = rows - row / kQuantizedRowsTile * kQuantizedRowsTile;
  return static_cast<int>(left < kQuantizedRowsTile ? left
                                                    : kQuantizedRowsTile);
}

// Start of the tile that holds `row`: block b of the tile is at
// b * QuantizedTileRows(...) * 48 from here.
WEFT_INLINE uint8_t* QuantizedTile(void* base, int64_t columns, int64_t row) {
  return static_cast<uint8_t*>(base) + row / kQuantizedRowsTile *
                                           kQuantizedRowsTile * (columns / 32) *
                                           kQuantizedRowsBlockBytes;
}

WEFT_INLINE QuantizedBlock QuantizedBlockAt(void* base, int64_t rows,
                                            int64_t columns, int64_t row,
                                            int64_t block) {
  const int tile_rows = QuantizedTileRows(row, rows);
  const int r = static_cast<int>(row % kQuantizedRowsTile);
  uint8_t* p = QuantizedTile(base, columns, row) +
               block * tile_rows * kQuantizedRowsBlockBytes;
  float* f = reinterpret_cast<float*>(p + tile_rows * 32);
  int32_t* i = reinterpret_cast<int32_t*>(f + 2 * tile_rows);
  return {reinterpret_cast<int8_t*>(p) + r * 32, f + r, f + tile_rows + r,
          i + r, i + tile_rows + r};
}

WEFT_INLINE void CopyQuantizedBlock(const QuantizedBlock& from,
                                    const QuantizedBlock& to) {
  memcpy(to.q, from.q, 32);
  *to.scale = *from.scale;
  *to.scaled_sum = *from.scaled_sum;
  *to.sum_low = *from.sum_low;
  *to.sum_high = *from.sum_high;
}

// Quantises 32 floats. The definition above, and the only code that does it.
WEFT_INLINE void QuantizeBlock(F32x16 low, F32x16 high, QuantizedBlock out) {
  // Without the sign, floats order as their bits do, infinity and then NaN
  // last: one reduction finds the maximum and whether all are finite.
  const I32x16 low_bits = BitsOf(Absolute(low));
  const I32x16 high_bits = BitsOf(Absolute(high));
  const int32_t bits = ReduceMax(Max(low_bits, high_bits));
  float largest;
  memcpy(&largest, &bits, sizeof(largest));
  const float poison = bits < 0x7f800000 ? 0.0f : __builtin_nanf("");
  // The quotient is rounded to a float first and multiplied after: the same
  // bits wherever this runs. Below 2^-120 the reciprocal would overflow.
  const bool tiny = !(largest >= 1e-36f);
  const float inverse = tiny ? 0.0f : 127.0f / largest;
  const float scale = (tiny ? 0.0f : largest / 127.0f) + poison;
  const I32x16 a = RoundToInt(low * Splat(inverse));
  const I32x16 b = RoundToInt(high * Splat(inverse));
  const I8x16 qa = LowBytes(a);
  const I8x16 qb = LowBytes(b);
  memcpy(out.q, &qa, 16);
  memcpy(out.q + 16, &qb, 16);
  // The low byte with its sign: what was stored, also for a NaN.
  const int32_t sum_low = ReduceSum((a << 24) >> 24);
  const int32_t sum_high = ReduceSum((b << 24) >> 24);
  *out.scale = scale;
  *out.scaled_sum = scale * static_cast<float>(sum_low + sum_high);
  *out.sum_low = sum_low;
  *out.sum_high = sum_high;
}

}  // namespace
}  // namespace weft
