// From a packed panel (panel16.h) to what kernels multiply: unsigned bytes,
// float scales, negated minimums. The one place, per quantisation, where a
// kernel knows the format.
//
// Written on a handful of operations over a whole register, 64 bytes with
// AVX-512, 32 with AVX2 and 16 with NEON (panel_vectors_neon.h); `part` counts
// registers within the 64 bytes or 16 lanes of the layout. Unnamed namespace:
// see vector.h.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include "ops/kernels/matmul/panel_vectors_neon.h"
#endif

#include "ops/kernels/matmul/panel16.h"
#include "ops/kernels/vector.h"

namespace weft {
namespace {

#if defined(__AVX512BW__)

typedef __m512i ByteVector;
typedef __m512i IntVector;
typedef __m512 FloatVector;
constexpr int kParts = 1;

WEFT_INLINE ByteVector LoadBytes(const void* p) {
  return _mm512_loadu_si512(p);
}
WEFT_INLINE void StoreBytes(void* p, ByteVector a) { _mm512_store_si512(p, a); }
WEFT_INLINE void StoreFloats(float* p, FloatVector a) { _mm512_store_ps(p, a); }
WEFT_INLINE ByteVector SplatByte(int x) {
  return _mm512_set1_epi8(static_cast<char>(x));
}
WEFT_INLINE ByteVector And(ByteVector a, ByteVector b) {
  return _mm512_and_si512(a, b);
}
// a | (b & mask).
WEFT_INLINE ByteVector OrMasked(ByteVector a, ByteVector b, ByteVector mask) {
  return _mm512_ternarylogic_epi32(a, b, mask, 0xf8);
}
// Bits of 16-bit lanes move; the caller masks what crosses bytes.
WEFT_INLINE ByteVector ShiftRight(ByteVector a, int n) {
  return n >= 0 ? _mm512_srli_epi16(a, static_cast<unsigned>(n))
                : _mm512_slli_epi16(a, static_cast<unsigned>(-n));
}
// table: 16 bytes; indices below 16.
WEFT_INLINE ByteVector LookUp(const uint8_t* table, ByteVector index) {
  const __m128i bytes =
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(bytes), index);
}
WEFT_INLINE FloatVector HalvesToFloats(const uint8_t* p) {
  return _mm512_cvtph_ps(
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
WEFT_INLINE IntVector UnsignedToInts(const uint8_t* p) {
  return _mm512_cvtepu8_epi32(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
WEFT_INLINE IntVector SignedToInts(const uint8_t* p) {
  return _mm512_cvtepi8_epi32(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
WEFT_INLINE IntVector LowNibble(IntVector a) {
  return _mm512_and_si512(a, _mm512_set1_epi32(15));
}
WEFT_INLINE IntVector HighNibble(IntVector a) {
  return _mm512_srli_epi32(a, 4);
}
WEFT_INLINE IntVector ShortsToInts(const uint8_t* p) {
  return _mm512_cvtepu16_epi32(
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
WEFT_INLINE IntVector GatherWords(const uint32_t* table, IntVector index) {
  return _mm512_i32gather_epi32(index, table, 4);
}
WEFT_INLINE FloatVector IntsToFloats(IntVector a) {
  return _mm512_cvtepi32_ps(a);
}
WEFT_INLINE FloatVector Multiply(FloatVector a, FloatVector b) {
  return _mm512_mul_ps(a, b);
}
// HalfPowerOfTwo of bytes (ops/formats/format.h): the exponent less one, but at
// least what stands for 1 and 0.
WEFT_INLINE FloatVector HalfPowersOfTwo(IntVector e) {
  const __m512i normal =
      _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
  const __m512i subnormal = _mm512_slli_epi32(
      _mm512_add_epi32(_mm512_min_epi32(e, _mm512_set1_epi32(1)),
                       _mm512_set1_epi32(1)),
      21);
  return _mm512_castsi512_ps(_mm512_max_epi32(normal, subnormal));
}
WEFT_INLINE FloatVector Negate(FloatVector a) {
  return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f));
}

#elif defined(__x86_64__)

typedef __m256i ByteVector;
typedef __m256i IntVector;
typedef __m256 FloatVector;
constexpr int kParts = 2;

WEFT_INLINE ByteVector LoadBytes(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
WEFT_INLINE void StoreBytes(void* p, ByteVector a) {
  _mm256_store_si256(static_cast<__m256i*>(p), a);
}
WEFT_INLINE void StoreFloats(float* p, FloatVector a) { _mm256_store_ps(p, a); }
WEFT_INLINE ByteVector SplatByte(int x) {
  return _mm256_set1_epi8(static_cast<char>(x));
}
WEFT_INLINE ByteVector And(ByteVector a, ByteVector b) {
  return _mm256_and_si256(a, b);
}
WEFT_INLINE ByteVector OrMasked(ByteVector a, ByteVector b, ByteVector mask) {
  return _mm256_or_si256(a, _mm256_and_si256(b, mask));
}
WEFT_INLINE ByteVector ShiftRight(ByteVector a, int n) {
  return n >= 0 ? _mm256_srli_epi16(a, n) : _mm256_slli_epi16(a, -n);
}
WEFT_INLINE ByteVector LookUp(const uint8_t* table, ByteVector index) {
  const __m128i bytes =
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), index);
}
WEFT_INLINE FloatVector HalvesToFloats(const uint8_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
WEFT_INLINE IntVector UnsignedToInts(const uint8_t* p) {
  return _mm256_cvtepu8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
WEFT_INLINE IntVector SignedToInts(const uint8_t* p) {
  return _mm256_cvtepi8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
WEFT_INLINE IntVector LowNibble(IntVector a) {
  return _mm256_and_si256(a, _mm256_set1_epi32(15));
}
WEFT_INLINE IntVector HighNibble(IntVector a) {
  return _mm256_srli_epi32(a, 4);
}
WEFT_INLINE IntVector ShortsToInts(const uint8_t* p) {
  return _mm256_cvtepu16_epi32(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
WEFT_INLINE IntVector GatherWords(const uint32_t* table, IntVector index) {
  return _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), index, 4);
}
WEFT_INLINE FloatVector IntsToFloats(IntVector a) {
  return _mm256_cvtepi32_ps(a);
}
WEFT_INLINE FloatVector Multiply(FloatVector a, FloatVector b) {
  return _mm256_mul_ps(a, b);
}
WEFT_INLINE FloatVector HalfPowersOfTwo(IntVector e) {
  const __m256i one = _mm256_set1_epi32(1);
  const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, one), 23);
  const __m256i subnormal =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_min_epi32(e, one), one), 21);
  return _mm256_castsi256_ps(_mm256_max_epi32(normal, subnormal));
}
WEFT_INLINE FloatVector Negate(FloatVector a) {
  return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f));
}

#endif

constexpr int kPartBytes = 64 / kParts;  // of quants
constexpr int kPartLanes = 16 / kParts;  // output rows

// A lane each, for the compiler's operators.
typedef uint32_t WordVector __attribute__((vector_size(64 / kParts)));
typedef uint16_t ShortVector __attribute__((vector_size(64 / kParts)));
typedef uint8_t CodeVector __attribute__((vector_size(64 / kParts)));

// Levels + offset.
template <class Block>
struct LevelBytes {
  constexpr LevelBytes() : bytes() {
    for (int i = 0; i < 16; ++i) {
      bytes[i] = static_cast<uint8_t>(BlockFormat<Block>::kLevels[i] +
                                      BlockFormat<Block>::kOffset);
    }
  }
  uint8_t bytes[16];
};
template <class Block>
constexpr LevelBytes<Block> kLevelBytes;

// The signs of 32 columns of a codebook type, bit g of the bytes of group g.
template <class Block>
WEFT_INLINE WordVector UnpackSigns(const uint8_t* quants, int part) {
  using Panel = BlockFormat<Block>;
  WordVector signs = (WordVector)LoadBytes(quants + 64 * Panel::kIndexVectors +
                                           part * kPartBytes);
  if constexpr (Panel::Codebook::kSevenSigns) {
    // The last sign of groups 2r and 2r + 1 is bit 2r + 1 of the last byte.
    signs &= 0x55ffffffu;
    WordVector odd = signs ^ signs >> 16;
    odd ^= odd >> 8;
    odd ^= odd >> 1;
    signs |= (odd & 0x55) << 25;
  }
  return signs;
}

// The four bits that stand in the places of the last signs.
template <class Block>
WEFT_INLINE WordVector UnpackExtraBits(const uint8_t* quants, int part) {
  WordVector bits =
      (WordVector)LoadBytes(quants + 64 * BlockFormat<Block>::kIndexVectors +
                            part * kPartBytes) >>
          25 &
      0x55;
  bits = (bits | bits >> 1) & 0x33;
  return (bits | bits >> 2) & 0x0f;
}

// The byte or the two of each lane behind the indices and the signs.
template <class Block>
WEFT_INLINE WordVector UnpackHighBytes(const uint8_t* quants, int part) {
  using Panel = BlockFormat<Block>;
  constexpr int bytes = Panel::Codebook::kHighBytes;
  const uint8_t* p =
      quants + Panel::kQuantBytes - 16 * bytes + bytes * kPartLanes * part;
  return (WordVector)(bytes == 1 ? UnsignedToInts(p) : ShortsToInts(p));
}

// Group g of 32 columns of a codebook type.
template <class Block>
WEFT_INLINE ByteVector UnpackGrid(const uint8_t* quants, int g, int part) {
  using Panel = BlockFormat<Block>;
  using Codebook = typename Panel::Codebook;
  constexpr int indices = 32 / Codebook::kRun;
  const int i = g * indices / 8;
  WordVector index =
      (WordVector)LoadBytes(quants + 64 * (i / 4) + part * kPartBytes) >>
          8 * (i % 4) &
      255;
  WordVector high = {};
  if constexpr (Codebook::kHighBytes > 0) {
    high = UnpackHighBytes<Block>(quants, part);
  }
  if constexpr (Codebook::kHighBytes == 2) {
    index |= (high >> Codebook::kHighStride * i & 7) << 8;
  } else if constexpr (Codebook::kHighBytes == 1) {
    constexpr int bits = 8 / indices;
    index |= (high >> bits * i & ((1 << bits) - 1)) << 8;
  } else if constexpr (Codebook::kIndexBits > 8) {
    index |= ((WordVector)LoadBytes(quants + 64 * Panel::kIndexVectors +
                                    part * kPartBytes) >>
                  (25 + 2 * i) &
              1)
             << 8;
  }
  WordVector codes =
      (WordVector)GatherWords(Codebook::Words(), (IntVector)index);
  if (Codebook::kRun == 8) codes = codes >> 4 * (g % 2) & 0x07070707;
  ByteVector nibbles;
  if constexpr (Codebook::kHasSigns) {
    nibbles = OrMasked(
        (ByteVector)codes,
        ShiftRight((ByteVector)UnpackSigns<Block>(quants, part), g - 3),
        SplatByte(8));
  } else {
    nibbles =
        (ByteVector)(codes | (high >> Codebook::ShiftBit(i) & 1) * 0x08080808u);
  }
  return LookUp(kLevelBytes<Block>.bytes, nibbles);
}

// Group g of block k of a ternary super-block, whose quants these are.
template <class Block>
WEFT_INLINE ByteVector UnpackTernary(const uint8_t* quants, int k, int g,
                                     int part) {
  const int word = k < 5 ? g : k < 7 ? 8 + g % 4 : g < 4 ? 8 + g : 12;
  const int digit = k < 5 ? k : k < 7 ? 2 * (k - 5) + g / 4 : g < 4 ? 4 : g - 4;
  constexpr uint16_t kPowers[5] = {1, 3, 9, 27, 81};
  const uint16_t power = kPowers[digit];
  const ShortVector bytes =
      (ShortVector)LoadBytes(quants + 64 * word + part * kPartBytes);
  // The digit carries when the fraction is multiplied by 3.
  const ShortVector even = ((bytes & 255) * power & 255) * 3 >> 8;
  const ShortVector odd = ((bytes >> 8) * power & 255) * 3 >> 8;
  return (ByteVector)(even | odd << 8);
}

// Group g of 32 columns, block k of the super-block, as unsigned bytes: code,
// or level + offset. `quants` of the block, from PanelQuants. g is a constant
// after unrolling.
template <class Block>
WEFT_INLINE ByteVector UnpackGroup(const uint8_t* quants, int k, int g,
                                   int part) {
  using Panel = BlockFormat<Block>;
  if constexpr (Panel::kForm == CodeForm::kGrid) {
    return UnpackGrid<Block>(quants, g, part);
  } else if constexpr (Panel::kForm == CodeForm::kTernary) {
    return UnpackTernary<Block>(quants - k * Panel::kQuantBytes, k, g, part);
  }
  constexpr int low = Panel::kLowBits, high = Panel::kHighBits;
  const uint8_t* p = quants + part * kPartBytes;
  ByteVector codes = LoadBytes(p + 64 * (g % low));
  if (low == 8) return codes;
  codes = And(ShiftRight(codes, low * (g / low)), SplatByte((1 << low) - 1));
  if (high > 0) {
    constexpr int bits = high > 0 ? high : 1;
    const ByteVector top = LoadBytes(p + 64 * (low + g % bits));
    codes = OrMasked(codes, ShiftRight(top, bits * (g / bits) - low),
                     SplatByte(((1 << bits) - 1) << low));
  }
  if constexpr (Panel::kHasLevels) {
    codes = LookUp(kLevelBytes<Block>.bytes, codes);
  }
  return codes;
}

// What one super-block multiplies its integer scales with.
struct PanelHalves {
  FloatVector d;
  FloatVector added;  // m, or minus dmin
};

// `meta` from PanelMeta.
template <class Block>
WEFT_INLINE PanelHalves LoadHalves(const uint8_t* meta, int part) {
  using Panel = BlockFormat<Block>;
  const uint8_t* p =
      meta + 16 * Panel::kBlocks * Panel::kPlanes + 2 * kPartLanes * part;
  PanelHalves halves = {};
  if constexpr (Panel::kHalves == 0) return halves;
  halves.d = HalvesToFloats(p);
  if constexpr (Panel::kOddScales) halves.d *= Panel::Codebook::kUnit;
  halves.added = halves.d;
  if (Panel::kHasMin) {
    halves.added = HalvesToFloats(p + 32);
    if (Panel::kScales != PanelScales::kHalfMin) {
      halves.added = Negate(halves.added);
    }
  }
  return halves;
}

// The number of an odd scale.
template <class Block>
WEFT_INLINE IntVector UnpackOddNumber(const uint8_t* quants,
                                      const uint8_t* meta, int k, int h,
                                      int part) {
  using Panel = BlockFormat<Block>;
  if constexpr (Panel::kScales == PanelScales::kOdd) {
    const IntVector both = UnsignedToInts(meta + 16 * k + kPartLanes * part);
    return h == 0 ? LowNibble(both) : HighNibble(both);
  } else if constexpr (Panel::Codebook::kHasSigns) {
    return (IntVector)UnpackExtraBits<Block>(quants, part);
  } else {
    return (IntVector)(UnpackHighBytes<Block>(quants, part) >> 12 & 7);
  }
}

// HalfSmallFloat of bytes (ops/formats/format.h).
WEFT_INLINE FloatVector HalfSmallFloats(IntVector bytes) {
  const WordVector bits = (WordVector)bytes, exponent = bits >> 3;
  const WordVector normal = (WordVector)(exponent != 0) & 1;
  const WordVector number = (bits & 7) + 8 * normal;
  const WordVector power = (exponent + 1 - normal + (127 - 11)) << 23;
  return Multiply(IntsToFloats((IntVector)number), (FloatVector)power);
}

// Scale of columns 16h .. 16h+15 (h = 0 when there is one scale per 32) of
// block k of the super-block, whose quants and meta data these are.
template <class Block>
WEFT_INLINE FloatVector UnpackScale(const PanelHalves& halves,
                                    const uint8_t* quants, const uint8_t* meta,
                                    int k, int h, int part) {
  using Panel = BlockFormat<Block>;
  const uint8_t* plane =
      meta + 16 * (k * Panel::kPlanes + h) + kPartLanes * part;
  constexpr PanelScales scales = Panel::kScales;
  if constexpr (scales == PanelScales::kHalf ||
                scales == PanelScales::kHalfMin) {
    return halves.d;
  } else if constexpr (scales == PanelScales::kSubScale) {
    return Multiply(halves.d, IntsToFloats(SignedToInts(plane)));
  } else if constexpr (scales == PanelScales::kSubScaleMin) {
    return Multiply(halves.d, IntsToFloats(UnsignedToInts(plane)));
  } else if constexpr (scales == PanelScales::kNibbleScaleMin) {
    return Multiply(halves.d, IntsToFloats(LowNibble(UnsignedToInts(plane))));
  } else if constexpr (scales == PanelScales::kSmallFloat) {
    return HalfSmallFloats(UnsignedToInts(plane));
  } else if constexpr (Panel::kOddScales) {
    const WordVector number =
        (WordVector)UnpackOddNumber<Block>(quants, meta, k, h, part);
    return Multiply(halves.d, IntsToFloats((IntVector)(2 * number + 1)));
  } else {
    static_assert(scales == PanelScales::kPowerOfTwo, "unknown scales");
    return HalfPowersOfTwo(UnsignedToInts(plane));
  }
}

// Minus the minimum, likewise, of formats that have one.
template <class Block>
WEFT_INLINE FloatVector UnpackNegativeMin(const PanelHalves& halves,
                                          const uint8_t* meta, int k, int h,
                                          int part) {
  using Panel = BlockFormat<Block>;
  const uint8_t* plane =
      meta + 16 * (k * Panel::kPlanes + h) + kPartLanes * part;
  if constexpr (Panel::kScales == PanelScales::kSubScaleMin) {
    return Multiply(halves.added, IntsToFloats(UnsignedToInts(plane + 16)));
  } else if constexpr (Panel::kScales == PanelScales::kNibbleScaleMin) {
    return Multiply(halves.added,
                    IntsToFloats(HighNibble(UnsignedToInts(plane))));
  } else {
    static_assert(Panel::kScales == PanelScales::kHalfMin || !Panel::kHasMin,
                  "unknown minimum");
    return halves.added;
  }
}

// Two panels unpacked for the whole depth, in scratch of UnpackedPairBytes.
struct UnpackedPair {
  const uint8_t* quants[2];  // [depth / 32][8 groups][64]
  // Per 32 columns: scales [scales per 32][2 panels][16], then minus the
  // minimums, likewise, if the type has them.
  const float* scales;
};

// One super-block of one panel: quants to bytes [32-column block][512] (not for
// Q8_0 unless signed), its scales and negated minimums to the panel's place
// among a pair's. Signed bytes have no offset.
template <class Block, bool as_signed = false>
WEFT_INLINE void UnpackSuperBlock(const uint8_t* quants, const uint8_t* meta,
                                  uint8_t* bytes, float* scales) {
  using Panel = BlockFormat<Block>;
  constexpr int per_32 = Panel::kScalesPer32;
  for (int part = 0; part < kParts; ++part) {
    const PanelHalves halves = LoadHalves<Block>(meta, part);
    for (int k = 0; k < Panel::kBlocks; ++k) {
      if (!Panel::kQuantsFirst || as_signed) {
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
          ByteVector codes =
              UnpackGroup<Block>(quants + k * Panel::kQuantBytes, k, g, part);
          if (as_signed && Panel::kOffset != 0) {
            codes = (ByteVector)((CodeVector)codes -
                                 static_cast<uint8_t>(Panel::kOffset));
          }
          StoreBytes(bytes + 512 * k + 64 * g + kPartBytes * part, codes);
        }
      }
      for (int h = 0; h < per_32; ++h) {
        float* to = scales + UnpackedScaleFloats<Block>() * k + 32 * h +
                    kPartLanes * part;
        StoreFloats(to,
                    UnpackScale<Block>(halves, quants + k * Panel::kQuantBytes,
                                       meta, k, h, part));
        if (Panel::kHasMin) {
          StoreFloats(to + 32 * per_32,
                      UnpackNegativeMin<Block>(halves, meta, k, h, part));
        }
      }
    }
  }
}

template <class Block, bool as_signed>
__attribute__((noinline)) UnpackedPair UnpackPair(const uint8_t* const panel[2],
                                                  int64_t depth,
                                                  uint8_t* scratch) {
  using Panel = BlockFormat<Block>;
  const int64_t quant_bytes = UnpackedQuantBytes<Block, as_signed>(depth);
  float* scales = reinterpret_cast<float*>(scratch + 2 * quant_bytes);
  UnpackedPair pair;
  pair.scales = scales;
  for (int v = 0; v < 2; ++v) {
    uint8_t* bytes = scratch + v * quant_bytes;
    pair.quants[v] = quant_bytes == 0 ? panel[v] : bytes;
    for (int64_t s = 0; s < depth / Panel::kColumns; ++s) {
      UnpackSuperBlock<Block, as_signed>(
          panel[v] + PanelQuants<Block>(s * Panel::kBlocks),
          panel[v] + PanelMeta<Block>(s, depth),
          bytes + s * Panel::kBlocks * 512,
          scales + 16 * v + s * Panel::kBlocks * UnpackedScaleFloats<Block>());
    }
  }
  return pair;
}

}  // namespace
}  // namespace weft
