// Matmul on weights as they stand in the file: rows of GGUF blocks.
//
// Used when packing is switched off and as the plain partner that packed
// kernels are compared with. Each block is decoded once (ops/formats/format.h)
// for up to 60 rows of x. Order of summation as in matmul.h, so results are
// bit-identical to the packed kernels. For the gate epilogues rows of gate and
// up alternate in sixteens, as panels do, and fill them.
#pragma once

#include "ops/formats/formats.h"
#include "ops/kernels/matmul/matmul.h"
#include "ops/kernels/matmul/panel_epilogue.h"
#include "ops/kernels/quantized_rows.h"

namespace weft {
namespace {

constexpr int kRowsTogether = 10 * kQuantizedRowsTile;

// A decoded block with its quants widened once for all rows of x.
struct WideBlock {
  alignas(32) int16_t q[32];
  float scale[2];
  float negative_min[2];
};

WEFT_INLINE void Widen(const Decoded32& block, WideBlock* wide) {
  for (int i = 0; i < 32; ++i) wide->q[i] = block.q[i];
  for (int h = 0; h < 2; ++h) {
    wide->scale[h] = block.scale[h];
    wide->negative_min[h] = -block.min[h];
  }
}

// Sums of the products of each half. Written out for AVX2, since GCC 12 makes
// byte shuffles of the plain loop.
WEFT_INLINE void DotHalves(const int16_t* w, const int8_t* x, int32_t dot[2]) {
#if defined(__AVX2__)
  __m256i sums[2];
  for (int h = 0; h < 2; ++h) {
    const __m256i weights =
        _mm256_load_si256(reinterpret_cast<const __m256i*>(w + 16 * h));
    const __m256i values = _mm256_cvtepi8_epi16(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + 16 * h)));
    sums[h] = _mm256_madd_epi16(weights, values);
  }
  // Lanes of 4: two partial sums of the first half, then two of the second.
  const __m256i pairs = _mm256_hadd_epi32(sums[0], sums[1]);
  const __m128i fours = _mm_add_epi32(_mm256_castsi256_si128(pairs),
                                      _mm256_extracti128_si256(pairs, 1));
  const __m128i both = _mm_hadd_epi32(fours, fours);
  const int64_t bits = _mm_cvtsi128_si64(both);
  memcpy(dot, &bits, sizeof(bits));
#else
  for (int h = 0; h < 2; ++h) {
    dot[h] = 0;
    for (int i = 16 * h; i < 16 * h + 16; ++i) dot[h] += w[i] * x[i];
  }
#endif
}

// Adds a block's products with the `rows` rows of one tile, whose block starts
// at x, to their sums.
template <class Block>
WEFT_INLINE void AddBlock(const WideBlock& w, const uint8_t* x, int rows,
                          float* sums) {
  using Traits = BlockFormat<Block>;
  const int8_t* q = reinterpret_cast<const int8_t*>(x);
  const float* x_scale = reinterpret_cast<const float*>(x + 32 * rows);
  const float* scaled_sum = x_scale + rows;
  const int32_t* half_sum =
      reinterpret_cast<const int32_t*>(x_scale + 2 * rows);
  for (int r = 0; r < rows; ++r, q += 32) {
    int32_t dot[2];
    DotHalves(w.q, q, dot);
    float sum = sums[r];
    if (Traits::kScalesPer32 == 1) {
      sum = __builtin_fmaf(static_cast<float>(dot[0] + dot[1]),
                           w.scale[0] * x_scale[r], sum);
      if (Traits::kHasMin) {
        sum = __builtin_fmaf(scaled_sum[r], w.negative_min[0], sum);
      }
    } else {
      for (int h = 0; h < 2; ++h) {
        sum = __builtin_fmaf(static_cast<float>(dot[h]),
                             w.scale[h] * x_scale[r], sum);
        if (Traits::kHasMin) {
          const float xsum =
              x_scale[r] * static_cast<float>(half_sum[h * rows + r]);
          sum = __builtin_fmaf(xsum, w.negative_min[h], sum);
        }
      }
    }
    sums[r] = sum;
  }
}

// Sums of weight row `n` with rows first .. first + rows - 1 of x, one every
// kSumsStride floats.
template <class Block>
void SumRow(const MatmulArgs& args, int64_t n, int64_t first, int rows,
            float* sums) {
  const int64_t row_blocks = args.depth / BlockFormat<Block>::kColumns;
  const Block* w = reinterpret_cast<const Block*>(args.weight) + n * row_blocks;
  const uint8_t* x =
      QuantizedTile(const_cast<void*>(args.x), args.depth, first);
  const int64_t tile_bytes =
      kQuantizedRowsTile * args.depth / 32 * kQuantizedRowsBlockBytes;
  float sum[kRowsTogether] = {};
  for (int64_t b = 0; b < args.depth / 32; ++b) {
    Decoded32 block;
    WideBlock wide;
    DecodeBlock(w, b, &block);
    Widen(block, &wide);
    const uint8_t* tile = x;
    for (int r = 0; r < rows; r += kQuantizedRowsTile, tile += tile_bytes) {
      const int here = QuantizedTileRows(first + r, args.rows);
      AddBlock<Block>(wide, tile + b * here * kQuantizedRowsBlockBytes, here,
                      sum + r);
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
