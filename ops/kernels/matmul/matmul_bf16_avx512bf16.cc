// Matmuls of bfloat16 operands with vdpbf16ps: a tile of up to 6 rows of x by
// 64 rows of w, all sums in registers over a block of columns.
//
// One row reads 256 bytes of weights per pair of columns in one stream, which
// is what decoding wants. Many rows go to oneDNN (bf16_matmul.cc) where it sums
// in the same order; this kernel takes any number.

#if defined(__x86_64__)

#include "ops/kernels/matmul/bf16_isa.h"
#include "ops/kernels/matmul/panel_epilogue.h"

namespace weft {
namespace {

constexpr int kTileRows = 6;

// sums[r * kSumsStride + lane] of R rows, `depth` elements apart, and a group.
template <int R>
__attribute__((noinline)) void Bf16Tile(const uint16_t* x, int64_t depth,
                                        const uint16_t* w, float* sums) {
  const int64_t block = Bf16SumBlock(depth);
  for (int64_t begin = 0; begin < depth; begin += block) {
    const int64_t end = begin + block < depth ? begin + block : depth;
    __m512 sum[R][4];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) sum[r][v] = _mm512_setzero_ps();
    }
    for (int64_t k = begin; k < end; k += 2, w += 2 * kBf16GroupRows) {
      __m512bh weight[4];
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        weight[v] = (__m512bh)_mm512_loadu_si512(w + 32 * v);
        // Few rows wait for memory: ask for what comes 4 KB later.
        if (R <= 3) __builtin_prefetch(w + 32 * v + 2048, 0, 2);
      }
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        int32_t pair;
        memcpy(&pair, x + r * depth + k, sizeof(pair));
        const __m512bh value = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) {
          sum[r][v] = _mm512_dpbf16_ps(sum[r][v], value, weight[v]);
        }
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        float* place = sums + r * kSumsStride + 16 * v;
        _mm512_storeu_ps(
            place, begin == 0
                       ? sum[r][v]
                       : _mm512_add_ps(_mm512_loadu_ps(place), sum[r][v]));
      }
    }
  }
}

template <int R = kTileRows>
WEFT_INLINE void TileRows(int rows, const uint16_t* x, int64_t depth,
                          const uint16_t* w, float* sums) {
  if (rows == R) {
    Bf16Tile<R>(x, depth, w, sums);
  } else if constexpr (R > 1) {
    TileRows<R - 1>(rows, x, depth, w, sums);
  }
}

void Group(const MatmulArgs& args, int64_t panel, int panels, int64_t row_begin,
           int64_t row_end) {
  alignas(64) float sums[kTileRows * kSumsStride];
  const int64_t depth = Bf16PaddedDepth(args.depth);
  const uint16_t* w = reinterpret_cast<const uint16_t*>(
      args.weight + panel / 4 * Bf16GroupBytes(args.depth));
  // Cut evenly.
  const int64_t count = row_end - row_begin;
  const int64_t tiles = (count + kTileRows - 1) / kTileRows;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t row = row_begin + tile * count / tiles;
    const int rows =
        static_cast<int>(row_begin + (tile + 1) * count / tiles - row);
    TileRows(rows, static_cast<const uint16_t*>(args.x) + row * depth, depth, w,
             sums);
    FinishRows(args, panel, panels, row, rows, sums);
  }
}

void Finish(const MatmulArgs& args, int64_t panel, int panels, int64_t row,
            int rows, const float* sums) {
  FinishRows(args, panel, panels, row, rows, sums);
}

void Multiply(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
              uint8_t*) {
  for (int64_t p = panel_begin; p < panel_end; p += 4) {
    const int64_t left = panel_end - p;
    Group(args, p, static_cast<int>(left < 4 ? left : 4), 0, args.rows);
  }
}

void RoundRow(const float* x, int64_t depth, uint16_t* out) {
  const int64_t padded = Bf16PaddedDepth(depth);
  for (int64_t k = 0; k < padded; k += 16) {
    const int64_t left = depth - k;
    const int n = static_cast<int>(left < 0 ? 0 : left < 16 ? left : 16);
    const __m256bh rounded = _mm512_cvtneps_pbh(
        _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), x + k));
    memcpy(out + k, &rounded, sizeof(rounded));
  }
}

}  // namespace

const Bf16Kernels kBf16KernelsAvx512Bf16 = {.multiply = Multiply,
                                            .group = Group,
                                            .finish = Finish,
                                            .round_row = RoundRow};

}  // namespace weft

#endif  // __x86_64__
