// One description of every quantised type, for integer kernels and references.
//
// Whatever its layout, 32 consecutive elements of a row come down to
//   value[i] = scale[i / 16] * q[i] - min[i / 16]
// with q a signed 8-bit integer (offset removed, codebook looked up). Types
// with one scale per 32 give the same one twice; types without a minimum give
// +0.
//
// Rounding, the same for every kernel: scale and min are each ONE float32
// product, float(d) * float(integer scale); the value is a float32 product,
// then a float32 subtraction, never fused. Q4_1 and Q5_1 store a value to add:
// min is its negation.
//
// Everything that computes is static (see half.h); the traits are constants
// only.
#pragma once

#include <cstdint>
#include <cstring>

#include "ops/kernels/blocks.h"
#include "ops/kernels/half.h"

namespace weft {

struct Decoded32 {
  int8_t q[32];
  float scale[2];  // elements 0-15 and 16-31
  float min[2];
};

// Constants of a block type:
//   kElements      elements per block
//   kScalesPer32   1 or 2 different scales (and minimums) in 32 elements
//   kHasMin        min may differ from 0
//   kMinQuant, kMaxQuant   the range of q. q - kMinQuant fits an unsigned byte;
//   for
//                  types that store q + offset the offset is -kMinQuant.
template <class Block>
struct BlockTraits;

template <int elements, int scales_per_32, bool has_min, int min_quant,
          int max_quant>
struct BlockConstants {
  static constexpr int kElements = elements;
  static constexpr int kScalesPer32 = scales_per_32;
  static constexpr bool kHasMin = has_min;
  static constexpr int kMinQuant = min_quant;
  static constexpr int kMaxQuant = max_quant;
};

template <>
struct BlockTraits<BlockQ4_0> : BlockConstants<32, 1, false, -8, 7> {};
template <>
struct BlockTraits<BlockQ4_1> : BlockConstants<32, 1, true, 0, 15> {};
template <>
struct BlockTraits<BlockQ5_0> : BlockConstants<32, 1, false, -16, 15> {};
template <>
struct BlockTraits<BlockQ5_1> : BlockConstants<32, 1, true, 0, 31> {};
template <>
struct BlockTraits<BlockQ8_0> : BlockConstants<32, 1, false, -128, 127> {};
template <>
struct BlockTraits<BlockQ2_K> : BlockConstants<256, 2, true, 0, 3> {};
template <>
struct BlockTraits<BlockQ3_K> : BlockConstants<256, 2, false, -4, 3> {};
template <>
struct BlockTraits<BlockQ4_K> : BlockConstants<256, 1, true, 0, 15> {};
template <>
struct BlockTraits<BlockQ5_K> : BlockConstants<256, 1, true, 0, 31> {};
template <>
struct BlockTraits<BlockQ6_K> : BlockConstants<256, 2, false, -32, 31> {};
template <>
struct BlockTraits<BlockIQ4_NL> : BlockConstants<32, 1, false, -127, 113> {};
template <>
struct BlockTraits<BlockIQ4_XS> : BlockConstants<256, 1, false, -127, 113> {};

// --- Integer sub-scales
// -------------------------------------------------------

// Q3_K, group g of 16 elements (0-15): -32 to 31.
static inline int ScaleOfQ3_K(const uint8_t scales[12], int g) {
  const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
  const int high = (scales[8 + g % 4] >> (2 * (g / 4))) & 3;
  return (low | (high << 4)) - 32;
}

// Q4_K and Q5_K, group g of 32 elements (0-7): 0 to 63.
static inline int ScaleOfQ4_K(const uint8_t scales[12], int g) {
  if (g < 4) return scales[g] & 63;
  return (scales[g + 4] & 15) | ((scales[g - 4] >> 6) << 4);
}
static inline int MinOfQ4_K(const uint8_t scales[12], int g) {
  if (g < 4) return scales[g + 4] & 63;
  return (scales[g + 4] >> 4) | ((scales[g] >> 6) << 4);
}

// IQ4_XS, group g of 32 elements (0-7): -32 to 31.
static inline int ScaleOfIQ4_XS(const BlockIQ4_XS& block, int g) {
  const int low = (block.scales_l[g / 2] >> (4 * (g % 2))) & 15;
  const int high = (block.scales_h >> (2 * g)) & 3;
  return (low | (high << 4)) - 32;
}

// --- Blocks
// -------------------------------------------------------------------

static inline void SetScale(Decoded32* out, float scale, float min) {
  out->scale[0] = out->scale[1] = scale;
  out->min[0] = out->min[1] = min;
}

// DecodeBlock(row, b, out): elements 32b .. 32b+31 of a row that starts at
// `row`.
static inline void DecodeBlock(const BlockQ4_0* row, int64_t b,
                               Decoded32* out) {
  const BlockQ4_0& block = row[b];
  SetScale(out, F16ToF32(block.d), 0.0f);
  for (int i = 0; i < 16; ++i) {
    out->q[i] = static_cast<int8_t>((block.qs[i] & 15) - 8);
    out->q[i + 16] = static_cast<int8_t>((block.qs[i] >> 4) - 8);
  }
}

static inline void DecodeBlock(const BlockQ4_1* row, int64_t b,
                               Decoded32* out) {
  const BlockQ4_1& block = row[b];
  SetScale(out, F16ToF32(block.d), -F16ToF32(block.m));
  for (int i = 0; i < 16; ++i) {
    out->q[i] = static_cast<int8_t>(block.qs[i] & 15);
    out->q[i + 16] = static_cast<int8_t>(block.qs[i] >> 4);
  }
}

// The fifth bits of Q5_0 and Q5_1, one per element.
static inline uint32_t HighBits(const uint8_t qh[4]) {
  uint32_t bits;
  std::memcpy(&bits, qh, sizeof(bits));
  return bits;
}

static inline void DecodeBlock(const BlockQ5_0* row, int64_t b,
                               Decoded32* out) {
  const BlockQ5_0& block = row[b];
  SetScale(out, F16ToF32(block.d), 0.0f);
  const uint32_t high = HighBits(block.qh);
  for (int i = 0; i < 16; ++i) {
    const int low0 = block.qs[i] & 15, low1 = block.qs[i] >> 4;
    out->q[i] = static_cast<int8_t>((low0 | (((high >> i) & 1) << 4)) - 16);
    out->q[i + 16] =
        static_cast<int8_t>((low1 | (((high >> (i + 16)) & 1) << 4)) - 16);
  }
}

static inline void DecodeBlock(const BlockQ5_1* row, int64_t b,
                               Decoded32* out) {
  const BlockQ5_1& block = row[b];
  SetScale(out, F16ToF32(block.d), -F16ToF32(block.m));
  const uint32_t high = HighBits(block.qh);
  for (int i = 0; i < 16; ++i) {
    const int low0 = block.qs[i] & 15, low1 = block.qs[i] >> 4;
    out->q[i] = static_cast<int8_t>(low0 | (((high >> i) & 1) << 4));
    out->q[i + 16] =
        static_cast<int8_t>(low1 | (((high >> (i + 16)) & 1) << 4));
  }
}

static inline void DecodeBlock(const BlockQ8_0* row, int64_t b,
                               Decoded32* out) {
  SetScale(out, F16ToF32(row[b].d), 0.0f);
  std::memcpy(out->q, row[b].qs, 32);
}

static inline void DecodeBlock(const BlockQ2_K* row, int64_t b,
                               Decoded32* out) {
  const BlockQ2_K& block = row[b / 8];
  const int g = static_cast<int>(b % 8);
  const float d = F16ToF32(block.d), dmin = F16ToF32(block.dmin);
  for (int h = 0; h < 2; ++h) {
    const int packed = block.scales[2 * g + h];
    out->scale[h] = d * static_cast<float>(packed & 15);
    out->min[h] = dmin * static_cast<float>(packed >> 4);
  }
  const uint8_t* qs = block.qs + 32 * (g / 4);
  const int shift = 2 * (g % 4);
  for (int i = 0; i < 32; ++i) {
    out->q[i] = static_cast<int8_t>((qs[i] >> shift) & 3);
  }
}

static inline void DecodeBlock(const BlockQ3_K* row, int64_t b,
                               Decoded32* out) {
  const BlockQ3_K& block = row[b / 8];
  const int g = static_cast<int>(b % 8);
  const float d = F16ToF32(block.d);
  for (int h = 0; h < 2; ++h) {
    out->scale[h] =
        d * static_cast<float>(ScaleOfQ3_K(block.scales, 2 * g + h));
    out->min[h] = 0.0f;
  }
  const uint8_t* qs = block.qs + 32 * (g / 4);
  const int shift = 2 * (g % 4);
  for (int i = 0; i < 32; ++i) {
    const int low = (qs[i] >> shift) & 3;
    const int high = (block.hmask[i] >> g) & 1;
    out->q[i] = static_cast<int8_t>((low | (high << 2)) - 4);
  }
}

static inline void DecodeBlock(const BlockQ4_K* row, int64_t b,
                               Decoded32* out) {
  const BlockQ4_K& block = row[b / 8];
  const int g = static_cast<int>(b % 8);
  SetScale(
      out, F16ToF32(block.d) * static_cast<float>(ScaleOfQ4_K(block.scales, g)),
      F16ToF32(block.dmin) * static_cast<float>(MinOfQ4_K(block.scales, g)));
  const uint8_t* qs = block.qs + 32 * (g / 2);
  const int shift = 4 * (g % 2);
  for (int i = 0; i < 32; ++i) {
    out->q[i] = static_cast<int8_t>((qs[i] >> shift) & 15);
  }
}

static inline void DecodeBlock(const BlockQ5_K* row, int64_t b,
                               Decoded32* out) {
  const BlockQ5_K& block = row[b / 8];
  const int g = static_cast<int>(b % 8);
  SetScale(
      out, F16ToF32(block.d) * static_cast<float>(ScaleOfQ4_K(block.scales, g)),
      F16ToF32(block.dmin) * static_cast<float>(MinOfQ4_K(block.scales, g)));
  const uint8_t* qs = block.qs + 32 * (g / 2);
  const int shift = 4 * (g % 2);
  for (int i = 0; i < 32; ++i) {
    const int low = (qs[i] >> shift) & 15;
    out->q[i] = static_cast<int8_t>(low | (((block.qh[i] >> g) & 1) << 4));
  }
}

static inline void DecodeBlock(const BlockQ6_K* row, int64_t b,
                               Decoded32* out) {
  const BlockQ6_K& block = row[b / 8];
  const int g = static_cast<int>(b % 8);
  const float d = F16ToF32(block.d);
  for (int h = 0; h < 2; ++h) {
    out->scale[h] = d * static_cast<float>(block.scales[2 * g + h]);
    out->min[h] = 0.0f;
  }
  const uint8_t* ql = block.ql + 64 * (g / 4) + 32 * (g % 2);
  const uint8_t* qh = block.qh + 32 * (g / 4);
  const int low_shift = 4 * ((g / 2) % 2), high_shift = 2 * (g % 4);
  for (int i = 0; i < 32; ++i) {
    const int low = (ql[i] >> low_shift) & 15;
    const int high = (qh[i] >> high_shift) & 3;
    out->q[i] = static_cast<int8_t>((low | (high << 4)) - 32);
  }
}

static inline void LookUpIQ4(const uint8_t qs[16], int8_t q[32]) {
  for (int i = 0; i < 16; ++i) {
    q[i] = kIQ4Codebook[qs[i] & 15];
    q[i + 16] = kIQ4Codebook[qs[i] >> 4];
  }
}

static inline void DecodeBlock(const BlockIQ4_NL* row, int64_t b,
                               Decoded32* out) {
  SetScale(out, F16ToF32(row[b].d), 0.0f);
  LookUpIQ4(row[b].qs, out->q);
}

static inline void DecodeBlock(const BlockIQ4_XS* row, int64_t b,
                               Decoded32* out) {
  const BlockIQ4_XS& block = row[b / 8];
  const int g = static_cast<int>(b % 8);
  SetScale(out, F16ToF32(block.d) * static_cast<float>(ScaleOfIQ4_XS(block, g)),
           0.0f);
  LookUpIQ4(block.qs + 16 * g, out->q);
}

}  // namespace weft
