// Products of unsigned by signed bytes on x86, for one register of a panel (8
// lanes with AVX2, 16 with AVX-512; see panel_unpack.h for the types): what
// byte_rows.h is written on. Both ways are exact, so results equal every other
// kernel's.
#pragma once

#include "ops/kernels/matmul/panel_unpack.h"
#include "ops/kernels/matmul/product_kind.h"

#define WEFT_UNROLL _Pragma("GCC unroll 16")

namespace weft {
namespace {

#if defined(__AVX512BW__)

// Rows of x whose sums fit the registers.
constexpr int kByteRows = 6;

WEFT_INLINE IntVector SplatInt(int32_t x) { return _mm512_set1_epi32(x); }
WEFT_INLINE FloatVector SplatFloat(float x) { return _mm512_set1_ps(x); }
WEFT_INLINE FloatVector LoadFloats(const float* p) {
  return _mm512_loadu_ps(p);
}
WEFT_INLINE void StoreAnywhere(float* p, FloatVector a) {
  _mm512_storeu_ps(p, a);
}
WEFT_INLINE FloatVector AddProduct(FloatVector a, FloatVector b,
                                   FloatVector sum) {
  return _mm512_fmadd_ps(a, b, sum);
}
WEFT_INLINE IntVector AddInts(IntVector a, IntVector b) {
  return _mm512_add_epi32(a, b);
}
WEFT_INLINE IntVector AddShorts(IntVector a, IntVector b) {
  return _mm512_add_epi16(a, b);
}
// Pairs of unsigned by signed bytes, summed in 16 bits.
WEFT_INLINE IntVector MultiplyPairs(ByteVector w, ByteVector x) {
  return _mm512_maddubs_epi16(w, x);
}
WEFT_INLINE IntVector AddPairs(IntVector shorts) {
  return _mm512_madd_epi16(shorts, _mm512_set1_epi16(1));
}
WEFT_INLINE ByteVector FlipHighestBit(ByteVector w) {
  return _mm512_xor_si512(w, _mm512_set1_epi8(-128));
}
WEFT_INLINE ByteVector Magnitude(ByteVector w) { return _mm512_abs_epi8(w); }
// x, negated where w is negative.
WEFT_INLINE ByteVector WithSignOf(ByteVector x, ByteVector w) {
  return _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(),
                              x);
}

#else

constexpr int kByteRows = 3;

WEFT_INLINE IntVector SplatInt(int32_t x) { return _mm256_set1_epi32(x); }
WEFT_INLINE FloatVector SplatFloat(float x) { return _mm256_set1_ps(x); }
WEFT_INLINE FloatVector LoadFloats(const float* p) {
  return _mm256_loadu_ps(p);
}
WEFT_INLINE void StoreAnywhere(float* p, FloatVector a) {
  _mm256_storeu_ps(p, a);
}
WEFT_INLINE FloatVector AddProduct(FloatVector a, FloatVector b,
                                   FloatVector sum) {
  return _mm256_fmadd_ps(a, b, sum);
}
WEFT_INLINE IntVector AddInts(IntVector a, IntVector b) {
  return _mm256_add_epi32(a, b);
}
WEFT_INLINE IntVector AddShorts(IntVector a, IntVector b) {
  return _mm256_add_epi16(a, b);
}
WEFT_INLINE IntVector MultiplyPairs(ByteVector w, ByteVector x) {
  return _mm256_maddubs_epi16(w, x);
}
WEFT_INLINE IntVector AddPairs(IntVector shorts) {
  return _mm256_madd_epi16(shorts, _mm256_set1_epi16(1));
}
WEFT_INLINE ByteVector FlipHighestBit(ByteVector w) {
  return _mm256_xor_si256(w, _mm256_set1_epi8(-128));
}
WEFT_INLINE ByteVector Magnitude(ByteVector w) { return _mm256_abs_epi8(w); }
WEFT_INLINE ByteVector WithSignOf(ByteVector x, ByteVector w) {
  return _mm256_sign_epi8(x, w);
}

#endif

WEFT_INLINE ByteVector SplatWord(const int8_t* p) {
  int32_t word;
  memcpy(&word, p, sizeof(word));
  return SplatInt(word);
}

// Without a dot product: products are summed pairwise in 16 bits (vpmaddubsw),
// as many groups of 4 columns as provably fit, then widened to 32. Bytes that
// may reach 255 (Q8_0, the IQ4 codebook, both + 128) would saturate even in one
// pair; they go back to signed w, and |w| * (x with the sign of w) is summed
// instead: at most 2 * 128 * 127 per pair. x is never -128 (quantized_rows.h),
// so its negation exists.
struct PairProducts {
  template <class Kind>
  static constexpr int Offset() {
    return Kind::kOffset;
  }

  // sums[m][v] += groups first_group .. of rows x (32 bytes apart).
  template <class Kind, int rows>
  static WEFT_INLINE void Add(IntVector (*sums)[kParts], const uint8_t* quants,
                              const int8_t* x, int first_group) {
    constexpr int run = Kind::kGroupsPer16Bits;
    WEFT_UNROLL for (int first = 0; first < Kind::kGroups; first += run) {
      IntVector pairs[rows][kParts];
      WEFT_UNROLL for (int i = 0; i < run; ++i) {
        const int g = first_group + first + i;
        WEFT_UNROLL for (int v = 0; v < kParts; ++v) {
          ByteVector w = LoadBytes(quants + 64 * g + kPartBytes * v);
          ByteVector magnitude = w;
          if (Kind::kSigned) {
            w = FlipHighestBit(w);
            magnitude = Magnitude(w);
          }
          WEFT_UNROLL for (int m = 0; m < rows; ++m) {
            ByteVector y = SplatWord(x + 32 * m + 4 * g);
            if (Kind::kSigned) y = WithSignOf(y, w);
            const IntVector products = MultiplyPairs(magnitude, y);
            pairs[m][v] = i == 0 ? products : AddShorts(pairs[m][v], products);
          }
        }
      }
      WEFT_UNROLL for (int m = 0; m < rows; ++m) {
        WEFT_UNROLL for (int v = 0; v < kParts; ++v) {
          sums[m][v] = AddInts(sums[m][v], AddPairs(pairs[m][v]));
        }
      }
    }
  }
};

#if defined(__AVXVNNI__)

// vpdpbusd on 8 lanes.
struct DotProducts {
  template <class Kind>
  static constexpr int Offset() {
    return Kind::kUnsignedOffset;
  }

  template <class Kind, int rows>
  static WEFT_INLINE void Add(IntVector (*sums)[kParts], const uint8_t* quants,
                              const int8_t* x, int first_group) {
    WEFT_UNROLL for (int i = 0; i < Kind::kGroups; ++i) {
      const int g = first_group + i;
      ByteVector w[kParts];
      WEFT_UNROLL for (int v = 0; v < kParts; ++v) {
        w[v] = LoadBytes(quants + 64 * g + kPartBytes * v);
      }
      WEFT_UNROLL for (int m = 0; m < rows; ++m) {
        const ByteVector y = SplatWord(x + 32 * m + 4 * g);
        WEFT_UNROLL for (int v = 0; v < kParts; ++v) {
          sums[m][v] = _mm256_dpbusd_avx_epi32(sums[m][v], w[v], y);
        }
      }
    }
  }
};

#endif  // __AVXVNNI__

}  // namespace
}  // namespace weft
