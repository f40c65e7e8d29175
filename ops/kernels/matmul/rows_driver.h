// Matmul on weights as they stand in the file: rows of GGUF blocks.
//
// Used when packing is switched off and as the plain partner that packed
// kernels are compared with. Each block is decoded once (decode_block.h) for up
// to 60 rows of x. Order of summation as in matmul.h, so results are
// bit-identical to the packed kernels.
#pragma once

#include "ops/kernels/decode_block.h"
#include "ops/kernels/matmul/matmul.h"
#include "ops/kernels/matmul/panel_epilogue.h"
#include "ops/kernels/quantized_rows.h"

namespace weft {
namespace {

constexpr int kRowsTogether = 10 * kQuantizedRowsTile;

WEFT_INLINE int32_t Dot16(const int8_t* a, const int8_t* b) {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += a[i] * b[i];
  return sum;
}

// Adds one decoded block times one row's block to `sum`.
template <class Block>
WEFT_INLINE float AddBlock(const Decoded32& w, const QuantizedBlock& x,
                           float sum) {
  using Traits = BlockTraits<Block>;
  const float xs = *x.scale;
  const int32_t dot[2] = {Dot16(w.q, x.q), Dot16(w.q + 16, x.q + 16)};
  if (Traits::kScalesPer32 == 1) {
    sum = __builtin_fmaf(static_cast<float>(dot[0] + dot[1]), w.scale[0] * xs,
                         sum);
    if (Traits::kHasMin) sum = __builtin_fmaf(*x.scaled_sum, -w.min[0], sum);
    return sum;
  }
  const int32_t half_sum[2] = {*x.sum_low, *x.sum_high};
  for (int h = 0; h < 2; ++h) {
    sum = __builtin_fmaf(static_cast<float>(dot[h]), w.scale[h] * xs, sum);
    if (Traits::kHasMin) {
      sum =
          __builtin_fmaf(xs * static_cast<float>(half_sum[h]), -w.min[h], sum);
    }
  }
  return sum;
}

// Sums of weight row `n` with rows first .. first + rows - 1 of x, one every
// kSumsStride floats.
template <class Block>
void SumRow(const MatmulArgs& args, int64_t n, int64_t first, int rows,
            float* sums) {
  const int64_t row_blocks = args.depth / BlockTraits<Block>::kElements;
  const Block* w = reinterpret_cast<const Block*>(args.weight) + n * row_blocks;
  void* x = const_cast<void*>(args.x);
  float sum[kRowsTogether] = {};
  for (int64_t b = 0; b < args.depth / 32; ++b) {
    Decoded32 block;
    DecodeBlock(w, b, &block);
    for (int r = 0; r < rows; ++r) {
      sum[r] = AddBlock<Block>(
          block, QuantizedBlockAt(x, args.rows, args.depth, first + r, b),
          sum[r]);
    }
  }
  for (int r = 0; r < rows; ++r) sums[r * kSumsStride] = sum[r];
}

template <class Block>
void RowsMatmul(const MatmulArgs& args, int64_t begin, int64_t end) {
  const int together = PanelsTogether(args.epilogue);
  for (int64_t first = 0; first < args.rows; first += kRowsTogether) {
    const int64_t left = args.rows - first;
    const int rows =
        static_cast<int>(left < kRowsTogether ? left : kRowsTogether);
    for (int64_t p = begin; p < end; p += together) {
      alignas(64) float sums[kRowsTogether * kSumsStride];
      for (int i = 0; i < together * kPanelRows; ++i) {
        const int64_t n = p * kPanelRows + i;
        if (n < args.weight_rows) {
          SumRow<Block>(args, n, first, rows, sums + i);
        }
      }
      FinishRows(args, p, together, first, rows, sums);
    }
  }
}

}  // namespace
}  // namespace weft
