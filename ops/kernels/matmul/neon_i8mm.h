// Inner kernels on Advanced SIMD with usmmla: 2 lanes of weights by 2 rows of x
// over 8 columns in one instruction, unsigned bytes by signed ones.
//
// A panel's groups of 4 columns become operands of 8 columns by interleaving
// two registers. Sums stay as the instruction makes them, [lane 0 of row a, of
// row b, lane 1 of row a, of row b], until the end: scales are spread likewise.
// A tile is up to 6 rows by half a panel: 12 float and 12 integer sums, 4
// registers of weights and 3 of rows. An odd last row is its own neighbour. A
// single row takes the dot product (neon.h).
#pragma once

#include "ops/kernels/matmul/neon.h"

namespace weft {
namespace {

// Two rows' worth of a field, for lanes of both: [a, b, a, b].
template <bool both>
WEFT_INLINE float32x4_t PairOf(const float* p) {
  if (!both) return vld1q_dup_f32(p);
  const float32x2_t pair = vld1_f32(p);
  return vcombine_f32(pair, pair);
}
template <bool both>
WEFT_INLINE int32x4_t PairOf(const int32_t* p) {
  if (!both) return vld1q_dup_s32(p);
  const int32x2_t pair = vld1_s32(p);
  return vcombine_s32(pair, pair);
}

template <class Kind, int rows>
struct PairTile {
  static constexpr int kPairs = (rows + 1) / 2;
  static constexpr int kPer32 = Kind::kScalesPer32;

  static constexpr bool Both(int p) { return 2 * p + 1 < rows; }

  template <class T>
  static WEFT_INLINE auto Field(const T* field, int p) {
    return Both(p) ? PairOf<true>(field + 2 * p) : PairOf<false>(field + 2 * p);
  }

  static WEFT_INLINE int32x4_t Sum(const TileFields& x, int p, int h) {
    if (kPer32 == 1)
      return vaddq_s32(Field(x.sum_low, p), Field(x.sum_high, p));
    return Field(h == 0 ? x.sum_low : x.sum_high, p);
  }

  // Lanes 8 * part .. of a panel; the rest as BufferedKernels says.
  static __attribute__((noinline)) void Add(const uint8_t* quants,
                                            const float* scales,
                                            const uint8_t* x, int part,
                                            int64_t blocks,
                                            float* sums_memory) {
    quants += 32 * part;
    scales += 8 * part;
    sums_memory += 8 * part;
    // [pair of rows][pair of lanes]
    float32x4_t sums[kPairs][4];
    WEFT_UNROLL for (int p = 0; p < kPairs; ++p) {
      const float* a = sums_memory + 2 * p * kSumsStride;
      const float* b = Both(p) ? a + kSumsStride : a;
      WEFT_UNROLL for (int v = 0; v < 2; ++v) {
        const float32x4_t of_a = vld1q_f32(a + 4 * v);
        const float32x4_t of_b = vld1q_f32(b + 4 * v);
        sums[p][2 * v] = vzip1q_f32(of_a, of_b);
        sums[p][2 * v + 1] = vzip2q_f32(of_a, of_b);
      }
    }
    for (int64_t block = 0; block < blocks; ++block) {
      const TileFields fields = FieldsOf(x, rows, 0);
      WEFT_UNROLL for (int h = 0; h < kPer32; ++h) {
        int32x4_t dots[kPairs][4];
        WEFT_UNROLL for (int p = 0; p < kPairs; ++p) {
          const int32x4_t start =
              Kind::kHasMin
                  ? vdupq_n_s32(0)
                  : vmulq_n_s32(Sum(fields, p, h), -Kind::kUnsignedOffset);
          WEFT_UNROLL for (int j = 0; j < 4; ++j) dots[p][j] = start;
        }
        // Eight columns at a time.
        WEFT_UNROLL for (int c = h * 2; c < h * 2 + 4 / kPer32; ++c) {
          int8x16_t y[kPairs];
          WEFT_UNROLL for (int p = 0; p < kPairs; ++p) {
            const int8_t* a = fields.q + 64 * p + 8 * c;
            y[p] = vcombine_s8(vld1_s8(a), vld1_s8(Both(p) ? a + 32 : a));
          }
          WEFT_UNROLL for (int v = 0; v < 2; ++v) {
            const uint8_t* w = quants + 128 * c + 16 * v;
            const uint32x4_t low = vreinterpretq_u32_u8(vld1q_u8(w));
            const uint32x4_t high = vreinterpretq_u32_u8(vld1q_u8(w + 64));
            const uint8x16_t first =
                vreinterpretq_u8_u32(vzip1q_u32(low, high));
            const uint8x16_t second =
                vreinterpretq_u8_u32(vzip2q_u32(low, high));
            WEFT_UNROLL for (int p = 0; p < kPairs; ++p) {
              dots[p][2 * v] = vusmmlaq_s32(dots[p][2 * v], first, y[p]);
              dots[p][2 * v + 1] =
                  vusmmlaq_s32(dots[p][2 * v + 1], second, y[p]);
            }
          }
        }
        WEFT_UNROLL for (int v = 0; v < 2; ++v) {
          const float32x4_t four = vld1q_f32(scales + 32 * h + 4 * v);
          const float32x4_t spread[2] = {vzip1q_f32(four, four),
                                         vzip2q_f32(four, four)};
          WEFT_UNROLL for (int p = 0; p < kPairs; ++p) {
            const float32x4_t x_scale = Field(fields.scale, p);
            WEFT_UNROLL for (int i = 0; i < 2; ++i) {
              float32x4_t& sum = sums[p][2 * v + i];
              sum = vfmaq_f32(sum, vcvtq_f32_s32(dots[p][2 * v + i]),
                              vmulq_f32(spread[i], x_scale));
            }
          }
        }
        if (!Kind::kHasMin) continue;
        WEFT_UNROLL for (int v = 0; v < 2; ++v) {
          const float32x4_t four =
              vld1q_f32(scales + 32 * (kPer32 + h) + 4 * v);
          const float32x4_t spread[2] = {vzip1q_f32(four, four),
                                         vzip2q_f32(four, four)};
          WEFT_UNROLL for (int p = 0; p < kPairs; ++p) {
            const float32x4_t xsum =
                kPer32 == 1 ? Field(fields.scaled_sum, p)
                            : vmulq_f32(Field(fields.scale, p),
                                        vcvtq_f32_s32(Sum(fields, p, h)));
            WEFT_UNROLL for (int i = 0; i < 2; ++i) {
              float32x4_t& sum = sums[p][2 * v + i];
              sum = vfmaq_f32(sum, xsum, spread[i]);
            }
          }
        }
      }
      quants += 512;
      scales += Kind::kScaleFloats;
      x += rows * kQuantizedRowsBlockBytes;
    }
    WEFT_UNROLL for (int p = 0; p < kPairs; ++p) {
      float* a = sums_memory + 2 * p * kSumsStride;
      WEFT_UNROLL for (int v = 0; v < 2; ++v) {
        const float32x4_t low = sums[p][2 * v], high = sums[p][2 * v + 1];
        vst1q_f32(a + 4 * v, vuzp1q_f32(low, high));
        if (Both(p)) vst1q_f32(a + kSumsStride + 4 * v, vuzp2q_f32(low, high));
      }
    }
  }
};

struct NeonI8mmRows {
  template <class Kind>
  static void Add(const uint8_t* quants, const float* scales, const uint8_t* x,
                  int rows, int64_t blocks, float* sums) {
    if (rows == 1) {
      TileNeon<Kind, 1>(quants, scales, x, 1, 0, blocks, sums);
      return;
    }
    for (int part = 0; part < 2; ++part) {
      switch (rows) {
        case 2:
          PairTile<Kind, 2>::Add(quants, scales, x, part, blocks, sums);
          break;
        case 3:
          PairTile<Kind, 3>::Add(quants, scales, x, part, blocks, sums);
          break;
        case 4:
          PairTile<Kind, 4>::Add(quants, scales, x, part, blocks, sums);
          break;
        case 5:
          PairTile<Kind, 5>::Add(quants, scales, x, part, blocks, sums);
          break;
        default:
          PairTile<Kind, 6>::Add(quants, scales, x, part, blocks, sums);
          break;
      }
    }
  }
};

using NeonI8mmKernels = BufferedKernels<NeonI8mmRows>;

}  // namespace
}  // namespace weft
