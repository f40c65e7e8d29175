// Inner kernels on AVX-512 VNNI.
//
// vpdpbusd, vmulps and vfmadd share two pipes; broadcasts, conversions, integer
// additions, shifts and loads run beside them. With a float scale per 32
// columns a block costs 8 products, a multiply and an FMA per output: 80% of
// the product peak (73% with a minimum, 67% with a scale per 16) is the limit.
//
// The prefill tile is 6 rows x 2 panels: 12 float and 12 integer sums in
// registers. Its instructions are one-instruction `asm volatile` in the order
// written, because the compiler's own order spills sums; sums are local arrays,
// fully unrolled, in a function of their own, for the same reason.
//
// Weights are unsigned with an offset: integer sums start at minus offset times
// the sum of x, so the offset costs nothing.
#pragma once

#include "ops/kernels/matmul/panel_driver.h"

#define WEFT_UNROLL _Pragma("GCC unroll 16")

namespace weft {
namespace {

WEFT_INLINE __m512i Broadcast32(const void* p) {
  __m512i y;
  __asm__ volatile("vpbroadcastd %1,%0"
                   : "=v"(y)
                   : "m"(*static_cast<const int32_t*>(p)));
  return y;
}
WEFT_INLINE __m512 BroadcastFloat(const float* p) {
  return _mm512_castsi512_ps(Broadcast32(p));
}
WEFT_INLINE __m512i LoadOrdered(const void* p) {
  __m512i y;
  __asm__ volatile("vmovdqu64 %1,%0"
                   : "=v"(y)
                   : "m"(*static_cast<const __m512i_u*>(p)));
  return y;
}
// sum += products of 4 unsigned by 4 signed bytes, per lane.
WEFT_INLINE void DotProduct(__m512i& sum, __m512i w, __m512i x) {
  __asm__ volatile("vpdpbusd %2,%1,%0" : "+v"(sum) : "v"(w), "v"(x));
}
WEFT_INLINE __m512 ConvertOrdered(__m512i a) {
  __m512 y;
  __asm__ volatile("vcvtdq2ps %1,%0" : "=v"(y) : "v"(a));
  return y;
}
WEFT_INLINE __m512 MultiplyOrdered(__m512 a, __m512 b) {
  __m512 y;
  __asm__ volatile("vmulps %2,%1,%0" : "=v"(y) : "v"(a), "v"(b));
  return y;
}
WEFT_INLINE void FmaOrdered(__m512& sum, __m512 a, __m512 b) {
  __asm__ volatile("vfmadd231ps %2,%1,%0" : "+v"(sum) : "v"(a), "v"(b));
}
WEFT_INLINE void FmaOrdered(__m512& sum, __m512 a, const float* b) {
  __asm__ volatile("vfmadd231ps %2,%1,%0"
                   : "+v"(sum)
                   : "v"(a), "m"(*reinterpret_cast<const __m512*>(b)));
}

constexpr int Log2(int x) { return x <= 1 ? 0 : 1 + Log2(x / 2); }

// Types that differ only in their unpacking share one tile.
template <int per_32, bool has_min, int offset>
struct TileKind {
  static constexpr int kScalesPer32 = per_32;
  static constexpr bool kHasMin = has_min;
  static constexpr int kShift = Log2(offset);  // offsets are powers of two
};

// Where the integer sums of a block's rows start: minus offset times the sum of
// x, for each scale. Through memory, so that the tile itself only broadcasts:
// vector arithmetic there would take slots of the product pipes (3 points).
template <class Kind, int rows>
WEFT_INLINE void StoreStarts(const uint8_t* x, int32_t (*starts)[8]) {
  const int32_t* sum_low = reinterpret_cast<const int32_t*>(x + 40 * rows);
  const __mmask8 mask = static_cast<__mmask8>((1 << rows) - 1);
  const __m256i low = _mm256_maskz_loadu_epi32(mask, sum_low);
  const __m256i high = _mm256_maskz_loadu_epi32(mask, sum_low + rows);
  const __m256i zero = _mm256_setzero_si256();
  const auto store = [&](int h, __m256i sum) {
    const __m256i start =
        _mm256_slli_epi32(_mm256_sub_epi32(zero, sum), Kind::kShift);
    _mm256_store_si256(reinterpret_cast<__m256i*>(starts[h]), start);
  };
  if (Kind::kScalesPer32 == 2) {
    store(0, low);
    store(1, high);
  } else {
    store(0, _mm256_add_epi32(low, high));
  }
}

template <class Kind, int rows>
__attribute__((noinline)) void Tile512(const TileCall& call) {
  constexpr int per_32 = Kind::kScalesPer32;
  constexpr int groups = 8 / per_32;
  const uint8_t* w0 = call.weights.quants[0];
  const int64_t w_distance = call.weights.quants[1] - w0;
  const float* scales = call.weights.scales;
  const uint8_t* x = call.x;
  const uint8_t* prefetch = call.prefetch;
  const int64_t step = call.prefetch_step;
  // Of this block and of the next, by turns.
  alignas(64) int32_t starts[2][2][8];
  if (!Kind::kHasMin) StoreStarts<Kind, rows>(x, starts[0]);
  __m512 sums[rows][2];
  WEFT_UNROLL for (int m = 0; m < rows; ++m) {
    sums[m][0] = _mm512_setzero_ps();
    sums[m][1] = _mm512_setzero_ps();
  }
  for (int64_t b = 0; b < call.blocks; ++b, prefetch += step) {
    for (int64_t o = 0; o < step; o += 64) {
      __asm__ volatile("prefetcht1 %0" : : "m"(prefetch[o]));
    }
    const int64_t x_step =
        b + 1 < call.blocks ? rows * kQuantizedRowsBlockBytes : 0;
    if (!Kind::kHasMin) {
      StoreStarts<Kind, rows>(x + x_step, starts[(b + 1) % 2]);
    }
    const float* x_scale = reinterpret_cast<const float*>(x + 32 * rows);
    const float* scaled_sum = x_scale + rows;
    const int32_t* sum_low =
        reinterpret_cast<const int32_t*>(x_scale + 2 * rows);
    WEFT_UNROLL for (int h = 0; h < per_32; ++h) {
      __m512i dots[rows][2];
      const __m512i zero = _mm512_setzero_si512();
      WEFT_UNROLL for (int m = 0; m < rows; ++m) {
        __m512i start = zero;
        if (!Kind::kHasMin) start = Broadcast32(&starts[b % 2][h][m]);
        dots[m][0] = start;
        dots[m][1] = start;
      }
      WEFT_UNROLL for (int g = 0; g < groups; ++g) {
        const int at = h * groups + g;
        const __m512i wa = LoadOrdered(w0 + 64 * at);
        const __m512i wb = LoadOrdered(w0 + w_distance + 64 * at);
        if (g < groups - 1) {
          WEFT_UNROLL for (int m = 0; m < rows; ++m) {
            const __m512i y = Broadcast32(x + 32 * m + 4 * at);
            DotProduct(dots[m][0], wa, y);
            DotProduct(dots[m][1], wb, y);
          }
          continue;
        }
        const __m512 scale_a =
            _mm512_castsi512_ps(LoadOrdered(scales + 32 * h));
        const __m512 scale_b =
            _mm512_castsi512_ps(LoadOrdered(scales + 32 * h + 16));
        WEFT_UNROLL for (int m = 0; m < rows; ++m) {
          const __m512i y = Broadcast32(x + 32 * m + 4 * at);
          DotProduct(dots[m][0], wa, y);
          DotProduct(dots[m][1], wb, y);
          const __m512 xs = BroadcastFloat(x_scale + m);
          const __m512 dot_a = ConvertOrdered(dots[m][0]);
          const __m512 dot_b = ConvertOrdered(dots[m][1]);
          const __m512 product_a = MultiplyOrdered(scale_a, xs);
          const __m512 product_b = MultiplyOrdered(scale_b, xs);
          FmaOrdered(sums[m][0], dot_a, product_a);
          FmaOrdered(sums[m][1], dot_b, product_b);
          if (Kind::kHasMin) {
            const float* mins = scales + 32 * (per_32 + h);
            __m512 xsum;
            if (per_32 == 1) {
              xsum = BroadcastFloat(scaled_sum + m);
            } else {
              xsum = MultiplyOrdered(
                  ConvertOrdered(Broadcast32(sum_low + h * rows + m)), xs);
            }
            FmaOrdered(sums[m][0], xsum, mins);
            FmaOrdered(sums[m][1], xsum, mins + 16);
          }
        }
      }
    }
    w0 += 512;
    scales += 32 * per_32 * (Kind::kHasMin ? 2 : 1);
    x += x_step;
  }
  WEFT_UNROLL for (int m = 0; m < rows; ++m) {
    _mm512_storeu_ps(call.sums + m * kSumsStride, sums[m][0]);
    _mm512_storeu_ps(call.sums + m * kSumsStride + 16, sums[m][1]);
  }
}

// Software prefetch of streamed weights, far enough ahead to cover the latency
// of DRAM at full bandwidth.
constexpr int64_t kPrefetchAhead = 4096;

// One panel against 1 to 8 rows, unpacked in registers: rows of one tile of
// quantised rows, or 6 of one and 1 or 2 of the next (x_next). With few rows
// two chains of products per sum hide their latency.
template <class Block, int rows>
__attribute__((noinline)) void Panel512(const uint8_t* panel, int64_t depth,
                                        const uint8_t* x, const uint8_t* x_next,
                                        float* out) {
  using Panel = Panel16<Block>;
  constexpr int per_32 = Panel::kScalesPer32;
  constexpr int groups = 8 / per_32;
  constexpr int chains = rows <= 6 ? 2 : 1;
  constexpr int stream_bytes = Panel::kQuantsFirst
                                   ? Panel::kQuantBytes
                                   : Panel::kSuperBlockBytes / Panel::kBlocks;
  constexpr int here = rows < kQuantizedRowsTile ? rows : kQuantizedRowsTile;
  constexpr int next = rows - here;
  __m512 sums[rows];
  WEFT_UNROLL for (int m = 0; m < rows; ++m) sums[m] = _mm512_setzero_ps();
  for (int64_t s = 0; s < depth / Panel::kColumns; ++s) {
    const uint8_t* meta = panel + PanelMeta<Block>(s, depth);
    const PanelHalves halves = LoadHalves<Block>(meta, 0);
    const uint8_t* quants = panel + PanelQuants<Block>(s * Panel::kBlocks);
    const uint8_t* ahead = quants + kPrefetchAhead;
    for (int k = 0; k < Panel::kBlocks; ++k) {
      WEFT_UNROLL for (int o = 0; o < stream_bytes; o += 64) {
        __asm__ volatile("prefetcht0 %0" : : "m"(ahead[o]));
      }
      ahead += stream_bytes;
      // Fields of row m; m is a constant after unrolling.
      const auto quants_of = [&](int m) {
        return m < here ? x + 32 * m : x_next + 32 * (m - here);
      };
      const auto field = [&](int m, int i) {
        const uint8_t* p = m < here
                               ? x + 32 * here + 4 * (i * here + m)
                               : x_next + 32 * next + 4 * (i * next + m - here);
        return p;
      };
      const auto float_field = [&](int m, int i) {
        return *reinterpret_cast<const float*>(field(m, i));
      };
      const auto int_field = [&](int m, int i) {
        return *reinterpret_cast<const int32_t*>(field(m, i));
      };
      WEFT_UNROLL for (int h = 0; h < per_32; ++h) {
        __m512i dots[rows][chains];
        WEFT_UNROLL for (int m = 0; m < rows; ++m) {
          dots[m][0] = _mm512_setzero_si512();
          dots[m][chains - 1] = _mm512_setzero_si512();
          if (!Panel::kHasMin) {
            const int32_t sum = per_32 == 2 ? int_field(m, 2 + h)
                                            : int_field(m, 2) + int_field(m, 3);
            dots[m][0] = _mm512_set1_epi32(-Panel::kOffset * sum);
          }
        }
        WEFT_UNROLL for (int i = 0; i < groups; ++i) {
          // Groups that share bytes are unpacked together.
          const int g = h * groups + i / 2 + i % 2 * (groups / 2);
          const __m512i w = UnpackGroup<Block>(quants, g, 0);
          WEFT_UNROLL for (int m = 0; m < rows; ++m) {
            DotProduct(dots[m][i % chains], w,
                       Broadcast32(quants_of(m) + 4 * g));
          }
        }
        const __m512 scale = UnpackScale<Block>(halves, meta, k, h, 0);
        WEFT_UNROLL for (int m = 0; m < rows; ++m) {
          __m512i dot = dots[m][0];
          if (chains == 2) dot = _mm512_add_epi32(dot, dots[m][chains - 1]);
          const __m512 xs = _mm512_set1_ps(float_field(m, 0));
          sums[m] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot),
                                    _mm512_mul_ps(scale, xs), sums[m]);
        }
        if (Panel::kHasMin) {
          const __m512 min = UnpackNegativeMin<Block>(halves, meta, k, h, 0);
          WEFT_UNROLL for (int m = 0; m < rows; ++m) {
            const float xsum =
                per_32 == 1 ? float_field(m, 1)
                            : float_field(m, 0) *
                                  static_cast<float>(int_field(m, 2 + h));
            sums[m] = _mm512_fmadd_ps(_mm512_set1_ps(xsum), min, sums[m]);
          }
        }
      }
      quants += Panel::kQuantBytes;
      x += here * kQuantizedRowsBlockBytes;
      x_next += next * kQuantizedRowsBlockBytes;
    }
  }
  WEFT_UNROLL for (int m = 0; m < rows; ++m) {
    _mm512_storeu_ps(out + m * kSumsStride, sums[m]);
  }
}

struct Vnni512Kernels {
  template <class Block>
  static void Tile(const TileCall& call, int rows) {
    using Panel = Panel16<Block>;
    using Kind = TileKind<Panel::kScalesPer32, Panel::kHasMin, Panel::kOffset>;
    switch (rows) {
      case 1:
        return Tile512<Kind, 1>(call);
      case 2:
        return Tile512<Kind, 2>(call);
      case 3:
        return Tile512<Kind, 3>(call);
      case 4:
        return Tile512<Kind, 4>(call);
      case 5:
        return Tile512<Kind, 5>(call);
      default:
        return Tile512<Kind, 6>(call);
    }
  }

  // Rows of x that Panel takes at once.
  static constexpr int kPanelRowsOfX = 8;

  template <class Block>
  static void Panel(const uint8_t* panel, int64_t depth, const uint8_t* x,
                    const uint8_t* x_next, int rows, float* sums) {
    switch (rows) {
      case 1:
        return Panel512<Block, 1>(panel, depth, x, x_next, sums);
      case 2:
        return Panel512<Block, 2>(panel, depth, x, x_next, sums);
      case 3:
        return Panel512<Block, 3>(panel, depth, x, x_next, sums);
      case 4:
        return Panel512<Block, 4>(panel, depth, x, x_next, sums);
      case 5:
        return Panel512<Block, 5>(panel, depth, x, x_next, sums);
      case 6:
        return Panel512<Block, 6>(panel, depth, x, x_next, sums);
      case 7:
        return Panel512<Block, 7>(panel, depth, x, x_next, sums);
      default:
        return Panel512<Block, 8>(panel, depth, x, x_next, sums);
    }
  }
};

}  // namespace
}  // namespace weft
