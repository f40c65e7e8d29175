// Inner kernels on AVX2, without an int8 dot product.
//
// Products of unsigned by signed bytes are summed pairwise in 16 bits
// (vpmaddubsw), as many groups of 4 columns as provably fit, then widened to 32
// bits: exact, so results equal every other kernel's. Bytes that may reach 255
// (Q8_0, the IQ4 codebook, both + 128) would saturate even in one pair; they go
// back to signed w, and |w| * (x with the sign of w) is summed instead: at most
// 2 * 128 * 127 per pair. x is never -128 (quantized_rows.h), so its negation
// exists.
//
// One panel is two registers of 8 lanes; a tile is up to 3 rows of x, two such
// tiles to a tile of quantised rows.
#pragma once

#include "ops/kernels/matmul/buffered_kernels.h"
#include "ops/kernels/matmul/panel_driver.h"
#include "ops/kernels/matmul/product_kind.h"

#define WEFT_UNROLL _Pragma("GCC unroll 16")

namespace weft {
namespace {

WEFT_INLINE __m256i Broadcast32(const int8_t* p) {
  int32_t word;
  memcpy(&word, p, sizeof(word));
  return _mm256_set1_epi32(word);
}

// Sums of `rows` rows against one unpacked panel, carried over `blocks` blocks.
// x: first block of the tile of tile_rows rows, from row first_row on; quants
// [blocks][512]; scales as in UnpackedPair (32 floats apart per scale, those of
// this panel first). sums: [rows][kSumsStride], read and written.
template <class Kind, int rows>
__attribute__((noinline)) void Tile256(const uint8_t* quants,
                                       const float* scales, const uint8_t* x,
                                       int tile_rows, int first_row,
                                       int64_t blocks, float* sums_memory) {
  constexpr int per_32 = Kind::kScalesPer32;
  constexpr int groups = Kind::kGroups;
  constexpr int run = Kind::kGroupsPer16Bits;
  const __m256i ones = _mm256_set1_epi16(1);
  __m256 sums[rows][2];
  WEFT_UNROLL for (int m = 0; m < rows; ++m) {
    WEFT_UNROLL for (int v = 0; v < 2; ++v) {
      sums[m][v] = _mm256_loadu_ps(sums_memory + m * kSumsStride + 8 * v);
    }
  }
  for (int64_t b = 0; b < blocks; ++b) {
    const int8_t* xq = reinterpret_cast<const int8_t*>(x) + 32 * first_row;
    const float* x_scale =
        reinterpret_cast<const float*>(x + 32 * tile_rows) + first_row;
    const float* scaled_sum = x_scale + tile_rows;
    const int32_t* sum_low =
        reinterpret_cast<const int32_t*>(scaled_sum + tile_rows);
    const int32_t* sum_high = sum_low + tile_rows;
    WEFT_UNROLL for (int h = 0; h < per_32; ++h) {
      __m256i dots[rows][2];
      WEFT_UNROLL for (int m = 0; m < rows; ++m) {
        const int32_t sum = per_32 == 1 ? sum_low[m] + sum_high[m]
                            : h == 0    ? sum_low[m]
                                        : sum_high[m];
        const __m256i start = Kind::kOffset == 0
                                  ? _mm256_setzero_si256()
                                  : _mm256_set1_epi32(-Kind::kOffset * sum);
        dots[m][0] = start;
        dots[m][1] = start;
      }
      WEFT_UNROLL for (int first = 0; first < groups; first += run) {
        __m256i pairs[rows][2];
        WEFT_UNROLL for (int i = 0; i < run; ++i) {
          const int g = h * groups + first + i;
          WEFT_UNROLL for (int v = 0; v < 2; ++v) {
            __m256i w = LoadBytes(quants + 64 * g + 32 * v);
            __m256i magnitude = w;
            if (Kind::kSigned) {
              w = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
              magnitude = _mm256_abs_epi8(w);
            }
            WEFT_UNROLL for (int m = 0; m < rows; ++m) {
              __m256i y = Broadcast32(xq + 32 * m + 4 * g);
              if (Kind::kSigned) y = _mm256_sign_epi8(y, w);
              const __m256i products = _mm256_maddubs_epi16(magnitude, y);
              pairs[m][v] =
                  i == 0 ? products : _mm256_add_epi16(pairs[m][v], products);
            }
          }
        }
        WEFT_UNROLL for (int m = 0; m < rows; ++m) {
          WEFT_UNROLL for (int v = 0; v < 2; ++v) {
            dots[m][v] = _mm256_add_epi32(dots[m][v],
                                          _mm256_madd_epi16(pairs[m][v], ones));
          }
        }
      }
      WEFT_UNROLL for (int m = 0; m < rows; ++m) {
        const __m256 xs = _mm256_set1_ps(x_scale[m]);
        WEFT_UNROLL for (int v = 0; v < 2; ++v) {
          const __m256 scale = _mm256_loadu_ps(scales + 32 * h + 8 * v);
          sums[m][v] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[m][v]),
                                       _mm256_mul_ps(scale, xs), sums[m][v]);
        }
        if (Kind::kHasMin) {
          const float half_sum =
              static_cast<float>(h == 0 ? sum_low[m] : sum_high[m]);
          const __m256 xsum = _mm256_set1_ps(
              per_32 == 1 ? scaled_sum[m] : x_scale[m] * half_sum);
          WEFT_UNROLL for (int v = 0; v < 2; ++v) {
            const float* min = scales + 32 * (per_32 + h) + 8 * v;
            sums[m][v] =
                _mm256_fmadd_ps(xsum, _mm256_loadu_ps(min), sums[m][v]);
          }
        }
      }
    }
    quants += 512;
    scales += Kind::kScaleFloats;
    x += tile_rows * kQuantizedRowsBlockBytes;
  }
  WEFT_UNROLL for (int m = 0; m < rows; ++m) {
    WEFT_UNROLL for (int v = 0; v < 2; ++v) {
      _mm256_storeu_ps(sums_memory + m * kSumsStride + 8 * v, sums[m][v]);
    }
  }
}

// All rows of a tile of quantised rows.
template <class Kind>
void Rows256(const uint8_t* quants, const float* scales, const uint8_t* x,
             int rows, int64_t blocks, float* sums) {
  for (int first = 0; first < rows; first += 3) {
    float* to = sums + first * kSumsStride;
    switch (rows - first) {
      case 1:
        Tile256<Kind, 1>(quants, scales, x, rows, first, blocks, to);
        break;
      case 2:
        Tile256<Kind, 2>(quants, scales, x, rows, first, blocks, to);
        break;
      default:
        Tile256<Kind, 3>(quants, scales, x, rows, first, blocks, to);
        break;
    }
  }
}

struct Avx2Rows {
  template <class Kind>
  static void Add(const uint8_t* quants, const float* scales, const uint8_t* x,
                  int rows, int64_t blocks, float* sums) {
    Rows256<Kind>(quants, scales, x, rows, blocks, sums);
  }
};

using Avx2Kernels = BufferedKernels<Avx2Rows>;

}  // namespace
}  // namespace weft
