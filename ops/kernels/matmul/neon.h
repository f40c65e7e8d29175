// Inner kernels on Advanced SIMD: one loop for ARMv8.0, the int8 dot product
// and (neon_i8mm.h, from two rows up) products of 2x8 by 8x2.
//
// ARM multiplies signed bytes by signed bytes: codes up to 127 are signed bytes
// as they are, and bytes that may be larger (Q8_0, the IQ4 codebook, both +
// 128) become so by flipping their highest bit. Sums of types with an offset
// start at minus offset times the sum of x, as everywhere.
//
// A panel is four registers of 4 lanes; a tile is up to 3 rows of x: 12 float
// and 12 integer sums in registers, 4 registers of weights and one of each row.
//
// Without the dot product, products are summed in 16 bits per lane, as many
// groups of 4 columns as provably fit (ProductKind), then pairwise in 32:
// exact, so results equal every other kernel's.
#pragma once

#include <arm_neon.h>

#include "ops/kernels/matmul/buffered_kernels.h"
#include "ops/kernels/matmul/panel_driver.h"
#include "ops/kernels/matmul/product_kind.h"
#include "ops/kernels/matmul/tile_fields.h"

#define WEFT_UNROLL _Pragma("GCC unroll 16")

namespace weft {
namespace {

// sum += products of 16 columns: w holds 4 groups of 4 columns for 4 lanes, x
// the columns of one row.
template <class Kind>
WEFT_INLINE int32x4_t AddProducts(int32x4_t sum, const int8x16_t w[4],
                                  int8x16_t x) {
#if defined(__ARM_FEATURE_DOTPROD)
  sum = vdotq_laneq_s32(sum, w[0], x, 0);
  sum = vdotq_laneq_s32(sum, w[1], x, 1);
  sum = vdotq_laneq_s32(sum, w[2], x, 2);
  return vdotq_laneq_s32(sum, w[3], x, 3);
#else
  constexpr int run = Kind::kGroupsPer16Bits < 4 ? Kind::kGroupsPer16Bits : 4;
  const int32x4_t words = vreinterpretq_s32_s8(x);
  const int32x4_t groups[4] = {
      vdupq_laneq_s32(words, 0), vdupq_laneq_s32(words, 1),
      vdupq_laneq_s32(words, 2), vdupq_laneq_s32(words, 3)};
  WEFT_UNROLL for (int first = 0; first < 4; first += run) {
    int16x8_t low = vdupq_n_s16(0), high = low;
    WEFT_UNROLL for (int i = first; i < first + run; ++i) {
      const int8x16_t y = vreinterpretq_s8_s32(groups[i]);
      low = vmlal_s8(low, vget_low_s8(w[i]), vget_low_s8(y));
      high = vmlal_high_s8(high, w[i], y);
    }
    // Two pair sums of each lane.
    sum = vpadalq_s16(sum, vpaddq_s16(low, high));
  }
  return sum;
#endif
}

// Rows first_row .. first_row + rows - 1 of a tile of tile_rows; the rest as
// BufferedKernels says.
template <class Kind, int rows>
__attribute__((noinline)) void TileNeon(const uint8_t* quants,
                                        const float* scales, const uint8_t* x,
                                        int tile_rows, int first_row,
                                        int64_t blocks, float* sums_memory) {
  constexpr int per_32 = Kind::kScalesPer32;
  float32x4_t sums[rows][4];
  WEFT_UNROLL for (int m = 0; m < rows; ++m) {
    WEFT_UNROLL for (int v = 0; v < 4; ++v) {
      sums[m][v] = vld1q_f32(sums_memory + m * kSumsStride + 4 * v);
    }
  }
  for (int64_t b = 0; b < blocks; ++b) {
    const TileFields fields = FieldsOf(x, tile_rows, first_row);
    WEFT_UNROLL for (int h = 0; h < per_32; ++h) {
      int32x4_t dots[rows][4];
      WEFT_UNROLL for (int m = 0; m < rows; ++m) {
        const int32_t start =
            Kind::kOffset == 0 ? 0
                               : -Kind::kOffset * SumOf<per_32>(fields, m, h);
        WEFT_UNROLL for (int v = 0; v < 4; ++v) dots[m][v] = vdupq_n_s32(start);
      }
      WEFT_UNROLL for (int half = h; half < h + 2 / per_32; ++half) {
        int8x16_t y[rows];
        WEFT_UNROLL for (int m = 0; m < rows; ++m) {
          y[m] = vld1q_s8(fields.q + 32 * m + 16 * half);
        }
        WEFT_UNROLL for (int v = 0; v < 4; ++v) {
          int8x16_t w[4];
          WEFT_UNROLL for (int i = 0; i < 4; ++i) {
            uint8x16_t bytes = vld1q_u8(quants + 64 * (4 * half + i) + 16 * v);
            if (Kind::kSigned) bytes = veorq_u8(bytes, vdupq_n_u8(0x80));
            w[i] = vreinterpretq_s8_u8(bytes);
          }
          WEFT_UNROLL for (int m = 0; m < rows; ++m) {
            dots[m][v] = AddProducts<Kind>(dots[m][v], w, y[m]);
          }
        }
      }
      WEFT_UNROLL for (int v = 0; v < 4; ++v) {
        const float32x4_t scale = vld1q_f32(scales + 32 * h + 4 * v);
        WEFT_UNROLL for (int m = 0; m < rows; ++m) {
          sums[m][v] = vfmaq_f32(sums[m][v], vcvtq_f32_s32(dots[m][v]),
                                 vmulq_n_f32(scale, fields.scale[m]));
        }
      }
      if (Kind::kHasMin) {
        WEFT_UNROLL for (int v = 0; v < 4; ++v) {
          const float32x4_t min = vld1q_f32(scales + 32 * (per_32 + h) + 4 * v);
          WEFT_UNROLL for (int m = 0; m < rows; ++m) {
            sums[m][v] =
                vfmaq_n_f32(sums[m][v], min, ScaledSumOf<per_32>(fields, m, h));
          }
        }
      }
    }
    quants += 512;
    scales += Kind::kScaleFloats;
    x += tile_rows * kQuantizedRowsBlockBytes;
  }
  WEFT_UNROLL for (int m = 0; m < rows; ++m) {
    WEFT_UNROLL for (int v = 0; v < 4; ++v) {
      vst1q_f32(sums_memory + m * kSumsStride + 4 * v, sums[m][v]);
    }
  }
}

struct NeonRows {
  template <class Kind>
  static void Add(const uint8_t* quants, const float* scales, const uint8_t* x,
                  int rows, int64_t blocks, float* sums) {
    for (int first = 0; first < rows; first += 3) {
      float* to = sums + first * kSumsStride;
      switch (rows - first) {
        case 1:
          TileNeon<Kind, 1>(quants, scales, x, rows, first, blocks, to);
          break;
        case 2:
          TileNeon<Kind, 2>(quants, scales, x, rows, first, blocks, to);
          break;
        default:
          TileNeon<Kind, 3>(quants, scales, x, rows, first, blocks, to);
          break;
      }
    }
  }
};

using NeonKernels = BufferedKernels<NeonRows>;

}  // namespace
}  // namespace weft
