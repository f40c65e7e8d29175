// Inner kernels on AVX-512 VNNI.
//
// vpdpbusd, vmulps and vfmadd share two pipes; broadcasts, conversions, integer
// additions, shifts and loads run beside them. With a float scale per 32
// columns a block costs 8 products, a multiply and an FMA per output: 80% of
// the product peak (73% with a minimum, 67% with a scale per 16) is the limit.
//
// The tile is 6 rows x 2 panels: 12 float and 12 integer sums in registers. For
// prefill its weights are unpacked before, for batches as it runs: shifts and
// masks run beside the products. Its instructions are one-instruction `asm
// volatile` in the order written, because the compiler's own order spills sums;
// sums are local arrays, fully unrolled, in a function of their own, for the
// same reason (ordered512.h).
//
// Weights are unsigned with an offset: integer sums start at minus offset times
// the sum of x, so the offset costs nothing.
#pragma once

#include "ops/kernels/matmul/ordered512.h"
#include "ops/kernels/matmul/panel_driver.h"
#include "ops/kernels/matmul/quantized_isa.h"
#include "ops/kernels/matmul/tile_fields.h"

namespace weft {
namespace {

// sum += products of 4 unsigned by 4 signed bytes, per lane.
WEFT_INLINE void DotProduct(__m512i& sum, __m512i w, __m512i x) {
  __asm__ volatile("vpdpbusd %2,%1,%0" : "+v"(sum) : "v"(w), "v"(x));
}
constexpr int Log2(int x) { return x <= 1 ? 0 : 1 + Log2(x / 2); }

// The order of a half's groups in which those that share bytes follow each
// other.
constexpr int GroupInPairs(int i, int groups) {
  return i / 2 + i % 2 * (groups / 2);
}

// Where a tile takes the weights of two panels from, 32 columns at a time.
// Groups of 4 columns come in the order Order(0), Order(1), ...; Scales() finds
// the block's scales and negated minimums, laid out as in UnpackedPair, or
// writes them to the buffer it is given (kScaleFloats). A member array instead
// would keep the pointers in memory too.
//
// Unpacked before: types that differ only in their unpacking share one tile.
template <int per_32, bool has_min, int offset>
class UnpackedWeights {
 public:
  static constexpr int kScalesPer32 = per_32;
  static constexpr bool kHasMin = has_min;
  static constexpr int kShift = Log2(offset);  // offsets are powers of two
  static constexpr int kScaleFloats = 1;

  WEFT_INLINE explicit UnpackedWeights(const TileCall& call)
      : quants_(call.unpacked.quants[0]),
        distance_(call.unpacked.quants[1] - quants_),
        scales_(call.unpacked.scales) {}
  static constexpr int Order(int i) { return i; }
  WEFT_INLINE __m512i Group(int panel, int g) const {
    return LoadOrdered(quants_ + panel * distance_ + 64 * g);
  }
  WEFT_INLINE const float* Scales(float* /*buffer*/) const { return scales_; }
  WEFT_INLINE void Next() {
    quants_ += 512;
    scales_ += 32 * per_32 * (has_min ? 2 : 1);
  }

 private:
  const uint8_t* quants_;
  int64_t distance_;
  const float* scales_;
};

// As packed: unpacked in registers.
template <class Block>
class PackedWeights {
  using Panel = BlockFormat<Block>;
  static constexpr int kGroups = 8 / Panel::kScalesPer32;

 public:
  static constexpr int kScalesPer32 = Panel::kScalesPer32;
  static constexpr bool kHasMin = Panel::kHasMin;
  static constexpr int kShift = Log2(Panel::kOffset);
  static constexpr int kScaleFloats = UnpackedScaleFloats<Block>();

  WEFT_INLINE explicit PackedWeights(const TileCall& call)
      : quants_(call.packed[0]),
        meta_(quants_ + PanelMeta<Block>(0, 32 * call.blocks)),
        distance_(call.packed[1] - quants_) {}
  static constexpr int Order(int i) {
    return i / kGroups * kGroups + GroupInPairs(i % kGroups, kGroups);
  }
  WEFT_INLINE __m512i Group(int panel, int g) const {
    return UnpackGroup<Block>(quants_ + panel * distance_, block_, g, 0);
  }
  WEFT_INLINE const float* Scales(float* buffer) const {
    WEFT_UNROLL for (int v = 0; v < 2; ++v) {
      const uint8_t* meta = meta_ + v * distance_;
      const PanelHalves halves = LoadHalves<Block>(meta, 0);
      WEFT_UNROLL for (int h = 0; h < kScalesPer32; ++h) {
        float* to = buffer + 32 * h + 16 * v;
        StoreFloats(to, UnpackScale<Block>(halves, quants_ + v * distance_,
                                           meta, block_, h, 0));
        if (kHasMin) {
          StoreFloats(to + 32 * kScalesPer32,
                      UnpackNegativeMin<Block>(halves, meta, block_, h, 0));
        }
      }
    }
    return buffer;
  }
  WEFT_INLINE void Next() {
    quants_ += Panel::kQuantBytes;
    if (Panel::kBlocks == 1 || ++block_ == Panel::kBlocks) {
      block_ = 0;
      quants_ += PanelQuants<Block>(Panel::kBlocks) -
                 Panel::kBlocks * Panel::kQuantBytes;
      meta_ += PanelMeta<Block>(1, 0) - PanelMeta<Block>(0, 0);
    }
  }

 private:
  const uint8_t* quants_;
  const uint8_t* meta_;
  int64_t distance_;
  int block_ = 0;  // of the super-block
};

// Where the integer sums of a block's rows start: minus offset times the sum of
// x, for each scale. Through memory, so that the tile itself only broadcasts:
// vector arithmetic there would take slots of the product pipes (3 points).
template <class Weights, int rows>
WEFT_INLINE void StoreStarts(const uint8_t* x, int32_t (*starts)[8]) {
  const int32_t* sum_low = reinterpret_cast<const int32_t*>(x + 40 * rows);
  const __mmask8 mask = static_cast<__mmask8>((1 << rows) - 1);
  const __m256i low = _mm256_maskz_loadu_epi32(mask, sum_low);
  const __m256i high = _mm256_maskz_loadu_epi32(mask, sum_low + rows);
  const __m256i zero = _mm256_setzero_si256();
  const auto store = [&](int h, __m256i sum) {
    const __m256i start =
        _mm256_slli_epi32(_mm256_sub_epi32(zero, sum), Weights::kShift);
    _mm256_store_si256(reinterpret_cast<__m256i*>(starts[h]), start);
  };
  if (Weights::kScalesPer32 == 2) {
    store(0, low);
    store(1, high);
  } else {
    store(0, _mm256_add_epi32(low, high));
  }
}

template <class Weights, int rows>
__attribute__((noinline)) void Tile512(const TileCall& call) {
  constexpr int per_32 = Weights::kScalesPer32;
  constexpr int groups = 8 / per_32;
  Weights weights(call);
  alignas(64) float scale_buffer[Weights::kScaleFloats];
  const uint8_t* x = call.x;
  const uint8_t* prefetch = call.prefetch;
  const int64_t step = call.prefetch_step;
  // Of this block and of the next, by turns.
  alignas(64) int32_t starts[2][2][8];
  if (!Weights::kHasMin) StoreStarts<Weights, rows>(x, starts[0]);
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
    if (!Weights::kHasMin) {
      StoreStarts<Weights, rows>(x + x_step, starts[(b + 1) % 2]);
    }
    const float* scales = weights.Scales(scale_buffer);
    const float* x_scale = reinterpret_cast<const float*>(x + 32 * rows);
    const float* scaled_sum = x_scale + rows;
    const int32_t* sum_low =
        reinterpret_cast<const int32_t*>(x_scale + 2 * rows);
    WEFT_UNROLL for (int h = 0; h < per_32; ++h) {
      __m512i dots[rows][2];
      const __m512i zero = _mm512_setzero_si512();
      WEFT_UNROLL for (int m = 0; m < rows; ++m) {
        __m512i start = zero;
        if (!Weights::kHasMin) start = Broadcast32(&starts[b % 2][h][m]);
        dots[m][0] = start;
        dots[m][1] = start;
      }
      WEFT_UNROLL for (int g = 0; g < groups; ++g) {
        const int at = Weights::Order(h * groups + g);
        const __m512i wa = weights.Group(0, at);
        const __m512i wb = weights.Group(1, at);
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
          if (Weights::kHasMin) {
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
    weights.Next();
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

// One panel against a tile of few rows, unpacked in registers. Two chains of
// products per sum hide their latency.
template <class Block, int rows>
__attribute__((noinline)) void Panel512(const uint8_t* panel, int64_t depth,
                                        const uint8_t* x, float* out) {
  using Panel = BlockFormat<Block>;
  constexpr int per_32 = Panel::kScalesPer32;
  constexpr int groups = 8 / per_32;
  constexpr int stream_bytes = Panel::kQuantsFirst
                                   ? Panel::kQuantBytes
                                   : Panel::kSuperBlockBytes / Panel::kBlocks;
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
      const TileFields fields = FieldsOf(x, rows, 0);
      WEFT_UNROLL for (int h = 0; h < per_32; ++h) {
        __m512i dots[rows][2];
        WEFT_UNROLL for (int m = 0; m < rows; ++m) {
          dots[m][0] = _mm512_setzero_si512();
          dots[m][1] = _mm512_setzero_si512();
          if (!Panel::kHasMin) {
            dots[m][0] = _mm512_set1_epi32(-Panel::kOffset *
                                           SumOf<per_32>(fields, m, h));
          }
        }
        WEFT_UNROLL for (int i = 0; i < groups; ++i) {
          const int g = h * groups + GroupInPairs(i, groups);
          const __m512i w = UnpackGroup<Block>(quants, k, g, 0);
          WEFT_UNROLL for (int m = 0; m < rows; ++m) {
            DotProduct(dots[m][i % 2], w, Broadcast32(x + 32 * m + 4 * g));
          }
        }
        const __m512 scale = UnpackScale<Block>(halves, quants, meta, k, h, 0);
        WEFT_UNROLL for (int m = 0; m < rows; ++m) {
          const __m512i dot = _mm512_add_epi32(dots[m][0], dots[m][1]);
          const __m512 xs = _mm512_set1_ps(fields.scale[m]);
          sums[m] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot),
                                    _mm512_mul_ps(scale, xs), sums[m]);
        }
        if (Panel::kHasMin) {
          const __m512 min = UnpackNegativeMin<Block>(halves, meta, k, h, 0);
          WEFT_UNROLL for (int m = 0; m < rows; ++m) {
            sums[m] = _mm512_fmadd_ps(
                _mm512_set1_ps(ScaledSumOf<per_32>(fields, m, h)), min,
                sums[m]);
          }
        }
      }
      quants += Panel::kQuantBytes;
      x += rows * kQuantizedRowsBlockBytes;
    }
  }
  WEFT_UNROLL for (int m = 0; m < rows; ++m) {
    _mm512_storeu_ps(out + m * kSumsStride, sums[m]);
  }
}

template <class Weights>
WEFT_INLINE void TileOfRows(const TileCall& call, int rows) {
  switch (rows) {
    case 1:
      return Tile512<Weights, 1>(call);
    case 2:
      return Tile512<Weights, 2>(call);
    case 3:
      return Tile512<Weights, 3>(call);
    case 4:
      return Tile512<Weights, 4>(call);
    case 5:
      return Tile512<Weights, 5>(call);
    default:
      return Tile512<Weights, 6>(call);
  }
}

struct Vnni512Kernels : SixRowKernels {
  template <class Block>
  static void Tile(const TileCall& call, int rows) {
    using Panel = BlockFormat<Block>;
    TileOfRows<
        UnpackedWeights<Panel::kScalesPer32, Panel::kHasMin, Panel::kOffset>>(
        call, rows);
  }
  template <class Block>
  static void PackedTile(const TileCall& call, int rows) {
    TileOfRows<PackedWeights<Block>>(call, rows);
  }

  // Up to 3 rows.
  template <class Block>
  static void Panel(const uint8_t* panel, int64_t depth, const uint8_t* x,
                    int rows, float* sums) {
    switch (rows) {
      case 1:
        return Panel512<Block, 1>(panel, depth, x, sums);
      case 2:
        return Panel512<Block, 2>(panel, depth, x, sums);
      default:
        return Panel512<Block, 3>(panel, depth, x, sums);
    }
  }
};

}  // namespace
}  // namespace weft
