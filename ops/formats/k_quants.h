// The K types: 256 elements share d (and dmin); groups of 16 or 32 have small
// integer scales, which d multiplies (and minimums, dmin).
//
// Of the encoder, fit.h finds d and the integers; this file rounds the elements
// to them and puts the bits where the blocks say.
#pragma once

#include <cstring>

#include "ops/formats/fit.h"
#include "ops/formats/fit_line.h"
#include "ops/formats/fit_scale.h"
#include "ops/formats/format.h"

namespace weft {

#pragma pack(push, 1)

struct BlockQ2_K {
  uint8_t scales[16];  // per 16 elements: low nibble scale, high nibble minimum
  uint8_t qs[64];      // byte 32h+i, bits 2j: element 128h+32j+i
  uint16_t d;
  uint16_t dmin;
};
struct BlockQ3_K {
  uint8_t hmask[32];   // byte i, bit b: third bit of element 32b+i
  uint8_t qs[64];      // as in Q2_K
  uint8_t scales[12];  // 16 values of 6 bits
  uint16_t d;
};
struct BlockQ4_K {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];  // 8 scales and 8 minimums of 6 bits
  uint8_t qs[128];     // byte 32c+i: low nibble element 64c+i, high 64c+32+i
};
struct BlockQ5_K {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qh[32];  // byte i, bit b: fifth bit of element 32b+i
  uint8_t qs[128];
};
struct BlockQ6_K {
  uint8_t ql[128];    // byte 64h+i: low nibble element 128h+i, high 128h+64+i
  uint8_t qh[64];     // byte 32h+i, bits 2j: top bits of element 128h+32j+i
  int8_t scales[16];  // per 16 elements
  uint16_t d;
};

#pragma pack(pop)

// --- Format ---

template <>
struct BlockFormat<BlockQ2_K>
    : FormatOf<BlockQ2_K, BitCodes<2, 0, 0>, PanelScales::kNibbleScaleMin, 2> {
};

template <>
struct BlockFormat<BlockQ3_K>
    : FormatOf<BlockQ3_K, BitCodes<2, 1, 4>, PanelScales::kSubScale, 2> {};

template <>
struct BlockFormat<BlockQ4_K>
    : FormatOf<BlockQ4_K, BitCodes<4, 0, 0>, PanelScales::kSubScaleMin, 1> {};

template <>
struct BlockFormat<BlockQ5_K>
    : FormatOf<BlockQ5_K, BitCodes<4, 1, 0>, PanelScales::kSubScaleMin, 1> {};

template <>
struct BlockFormat<BlockQ6_K>
    : FormatOf<BlockQ6_K, BitCodes<4, 2, 32>, PanelScales::kSubScale, 2> {};

static inline uint16_t SecondHalf(const BlockQ2_K& block) { return block.dmin; }
static inline uint16_t SecondHalf(const BlockQ4_K& block) { return block.dmin; }
static inline uint16_t SecondHalf(const BlockQ5_K& block) { return block.dmin; }

// --- Decoder ---

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

static inline uint8_t ReadPlane(const BlockQ2_K& block, int b, int p) {
  return block.scales[2 * b + p];
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

static inline uint8_t ReadPlane(const BlockQ3_K& block, int b, int p) {
  return static_cast<uint8_t>(ScaleOfQ3_K(block.scales, 2 * b + p));
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

static inline uint8_t ReadPlane(const BlockQ4_K& block, int b, int p) {
  return static_cast<uint8_t>(p == 0 ? ScaleOfQ4_K(block.scales, b)
                                     : MinOfQ4_K(block.scales, b));
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

static inline uint8_t ReadPlane(const BlockQ5_K& block, int b, int p) {
  return static_cast<uint8_t>(p == 0 ? ScaleOfQ4_K(block.scales, b)
                                     : MinOfQ4_K(block.scales, b));
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

static inline uint8_t ReadPlane(const BlockQ6_K& block, int b, int p) {
  return static_cast<uint8_t>(block.scales[2 * b + p]);
}

// --- Encoder ---

namespace quantize {
namespace {

constexpr Starts kStartsQ2_K = {0.7f, 1.3f, 18, false};
constexpr Starts kStartsQ3_K = {0.7f, 1.4f, 16, true};
constexpr Starts kStartsQ4_K = {0.85f, 1.25f, 16, false};
constexpr Starts kStartsQ5_K = {0.9f, 1.1f, 12, false};
constexpr Starts kStartsQ6_K = {0.92f, 1.08f, 12, false};

// Nearest integers of a super-block with minimums, for the scales as stored.
template <int max_quant, int group>
void Round(const float* x, const LineSuperBlock<group>& fit, uint8_t* q) {
  const float d = F16ToF32(fit.d), dmin = F16ToF32(fit.dmin);
  for (int i = 0; i < kSuperBlockSize; ++i) {
    const int g = i / group;
    const float inverse = Inverse(d * fit.scales[g]);
    q[i] = static_cast<uint8_t>(LinearLevels<0, max_quant>::Nearest(
        (x[i] + dmin * fit.mins[g]) * inverse));
  }
}

// The same for symmetric ones; `offset` makes them unsigned.
template <int offset, int group>
void Round(const float* x, const ScaledSuperBlock<group>& fit, uint8_t* q) {
  const float d = F16ToF32(fit.d);
  for (int i = 0; i < kSuperBlockSize; ++i) {
    const float inverse = Inverse(d * fit.scales[i / group]);
    q[i] = static_cast<uint8_t>(
        LinearLevels<-offset, offset - 1>::Nearest(x[i] * inverse) + offset);
  }
}

// Two low bits of each element, as Q2_K and Q3_K keep them.
inline void PackTwoBits(const uint8_t q[256], uint8_t qs[64]) {
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < 32; ++i) {
      const uint8_t* column = q + 128 * h + i;
      int packed = 0;
      for (int j = 0; j < 4; ++j) packed |= (column[32 * j] & 3) << (2 * j);
      qs[32 * h + i] = static_cast<uint8_t>(packed);
    }
  }
}

// Four low bits, as Q4_K and Q5_K keep them.
inline void PackFourBits(const uint8_t q[256], uint8_t qs[128]) {
  for (int c = 0; c < 4; ++c) {
    for (int i = 0; i < 32; ++i) {
      qs[32 * c + i] = static_cast<uint8_t>((q[64 * c + i] & 15) |
                                            ((q[64 * c + 32 + i] & 15) << 4));
    }
  }
}

// Eight scales and eight minimums of 6 bits: the inverse of ScaleOfQ4_K,
// MinOfQ4_K.
inline void PackScales(const LineSuperBlock<32>& fit, uint8_t packed[12]) {
  for (int g = 0; g < 4; ++g) {
    const int high_scale = fit.scales[g + 4] >> 4,
              high_min = fit.mins[g + 4] >> 4;
    packed[g] = static_cast<uint8_t>(fit.scales[g] | (high_scale << 6));
    packed[g + 4] = static_cast<uint8_t>(fit.mins[g] | (high_min << 6));
    packed[g + 8] = static_cast<uint8_t>((fit.scales[g + 4] & 15) |
                                         ((fit.mins[g + 4] & 15) << 4));
  }
}

inline void EncodeBlock(const float* x, const float* weights,
                        BlockQ2_K& block) {
  uint8_t q[kSuperBlockSize];
  const auto fit = FitLineSuperBlock<3, 16, 15>(x, weights, kStartsQ2_K);
  Round<3>(x, fit, q);
  block.d = fit.d;
  block.dmin = fit.dmin;
  for (int g = 0; g < 16; ++g) {
    block.scales[g] = static_cast<uint8_t>(fit.scales[g] | (fit.mins[g] << 4));
  }
  PackTwoBits(q, block.qs);
}

inline void EncodeBlock(const float* x, const float* weights,
                        BlockQ3_K& block) {
  uint8_t q[kSuperBlockSize];
  const auto fit = FitScaledSuperBlock<LinearLevels<-4, 3>, 16, -32, 31>(
      x, weights, kStartsQ3_K);
  Round<4>(x, fit, q);

  block.d = fit.d;
  PackTwoBits(q, block.qs);
  for (int i = 0; i < 32; ++i) {
    int mask = 0;
    for (int g = 0; g < 8; ++g) mask |= (q[32 * g + i] >> 2) << g;
    block.hmask[i] = static_cast<uint8_t>(mask);
  }
  std::memset(block.scales, 0, sizeof(block.scales));
  for (int g = 0; g < 16; ++g) {
    const int scale = fit.scales[g] + 32;
    block.scales[g % 8] |= static_cast<uint8_t>((scale & 15) << (4 * (g / 8)));
    block.scales[8 + g % 4] |=
        static_cast<uint8_t>((scale >> 4) << (2 * (g / 4)));
  }
}

inline void EncodeBlock(const float* x, const float* weights,
                        BlockQ4_K& block) {
  uint8_t q[kSuperBlockSize];
  const auto fit = FitLineSuperBlock<15, 32, 63>(x, weights, kStartsQ4_K);
  Round<15>(x, fit, q);
  block.d = fit.d;
  block.dmin = fit.dmin;
  PackScales(fit, block.scales);
  PackFourBits(q, block.qs);
}

inline void EncodeBlock(const float* x, const float* weights,
                        BlockQ5_K& block) {
  uint8_t q[kSuperBlockSize];
  const auto fit = FitLineSuperBlock<31, 32, 63>(x, weights, kStartsQ5_K);
  Round<31>(x, fit, q);
  block.d = fit.d;
  block.dmin = fit.dmin;
  PackScales(fit, block.scales);
  PackFourBits(q, block.qs);
  for (int i = 0; i < 32; ++i) {
    int high = 0;
    for (int g = 0; g < 8; ++g) high |= (q[32 * g + i] >> 4) << g;
    block.qh[i] = static_cast<uint8_t>(high);
  }
}

inline void EncodeBlock(const float* x, const float* weights,
                        BlockQ6_K& block) {
  uint8_t q[kSuperBlockSize];
  const auto fit = FitScaledSuperBlock<LinearLevels<-32, 31>, 16, -128, 127>(
      x, weights, kStartsQ6_K);
  Round<32>(x, fit, q);

  block.d = fit.d;
  for (int g = 0; g < 16; ++g) {
    block.scales[g] = static_cast<int8_t>(fit.scales[g]);
  }
  for (int h = 0; h < 2; ++h) {
    const uint8_t* half = q + 128 * h;
    for (int i = 0; i < 64; ++i) {
      block.ql[64 * h + i] =
          static_cast<uint8_t>((half[i] & 15) | ((half[64 + i] & 15) << 4));
    }
    for (int i = 0; i < 32; ++i) {
      int high = 0;
      for (int j = 0; j < 4; ++j) high |= (half[32 * j + i] >> 4) << (2 * j);
      block.qh[32 * h + i] = static_cast<uint8_t>(high);
    }
  }
}

// Of each of the types above.
template <class Block>
auto EncodeRow(const float* src, const float* importance, Block* blocks,
               int64_t n) -> decltype(EncodeBlock(src, importance, *blocks)) {
  float weights[kSuperBlockSize];
  for (int64_t b = 0; b < n / kSuperBlockSize; ++b) {
    const float* x = src + kSuperBlockSize * b;
    FillWeights<kSuperBlockSize>(x, At(importance, kSuperBlockSize * b),
                                 weights);
    EncodeBlock(x, weights, blocks[b]);
  }
}

}  // namespace
}  // namespace quantize
}  // namespace weft
