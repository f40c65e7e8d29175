// The older types: each block of 32 has its own float16 scale d (and m, a value
// to add: the minimum is its negation).
//
// The encoder searches the scale in float, rounds it to float16 as stored, and
// takes the nearest integers for the stored scale.
#pragma once

#include <cstring>

#include "ops/formats/fit.h"
#include "ops/formats/fit_line.h"
#include "ops/formats/fit_scale.h"
#include "ops/formats/format.h"

namespace weft {

#pragma pack(push, 1)

struct BlockQ4_0 {
  uint16_t d;
  uint8_t qs[16];  // low nibbles: elements 0-15, high nibbles: 16-31
};
struct BlockQ4_1 {
  uint16_t d;
  uint16_t m;
  uint8_t qs[16];
};
struct BlockQ5_0 {
  uint16_t d;
  uint8_t qh[4];  // bit i: fifth bit of element i
  uint8_t qs[16];
};
struct BlockQ5_1 {
  uint16_t d;
  uint16_t m;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockQ8_0 {
  uint16_t d;
  int8_t qs[32];
};

#pragma pack(pop)

// --- Format ---

template <>
struct BlockFormat<BlockQ4_0>
    : FormatOf<BlockQ4_0, BitCodes<4, 0, 8>, PanelScales::kHalf, 1> {};

template <>
struct BlockFormat<BlockQ4_1>
    : FormatOf<BlockQ4_1, BitCodes<4, 0, 0>, PanelScales::kHalfMin, 1> {};

template <>
struct BlockFormat<BlockQ5_0>
    : FormatOf<BlockQ5_0, BitCodes<4, 1, 16>, PanelScales::kHalf, 1> {};

template <>
struct BlockFormat<BlockQ5_1>
    : FormatOf<BlockQ5_1, BitCodes<4, 1, 0>, PanelScales::kHalfMin, 1> {};

template <>
struct BlockFormat<BlockQ8_0>
    : FormatOf<BlockQ8_0, BitCodes<8, 0, 128>, PanelScales::kHalf, 1> {};

static inline uint16_t SecondHalf(const BlockQ4_1& block) { return block.m; }
static inline uint16_t SecondHalf(const BlockQ5_1& block) { return block.m; }

// --- Decoder ---

// The fifth bits of Q5_0 and Q5_1, one per element.
static inline uint32_t HighBits(const uint8_t qh[4]) {
  uint32_t bits;
  std::memcpy(&bits, qh, sizeof(bits));
  return bits;
}

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

// --- Encoder ---

namespace quantize {
namespace {

constexpr Starts kStarts4 = {0.75f, 1.3f, 22, true};
constexpr Starts kStarts5 = {0.85f, 1.15f, 16, true};
constexpr Starts kLineStarts4 = {0.85f, 1.25f, 16, false};
constexpr Starts kLineStarts5 = {0.9f, 1.1f, 12, false};

// Integers 0..31 (offset added where the type has one) into nibbles and fifth
// bits.
inline void PackNibbles(const uint8_t q[32], uint8_t qs[16]) {
  for (int i = 0; i < 16; ++i) {
    qs[i] = static_cast<uint8_t>((q[i] & 15) | ((q[i + 16] & 15) << 4));
  }
}
inline void PackFifthBits(const uint8_t q[32], uint8_t qh[4]) {
  uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) bits |= static_cast<uint32_t>(q[i] >> 4) << i;
  std::memcpy(qh, &bits, sizeof(bits));
}

template <int offset>
uint16_t Symmetric(const float* x, const float* importance,
                   const Starts& starts, uint8_t q[32]) {
  using Levels = LinearLevels<-offset, offset - 1>;
  float weights[32];
  FillWeights<32>(x, importance, weights);
  const uint16_t d = ToStoredF16(FitScale<Levels, 32>(x, weights, starts));
  const float inverse = Inverse(F16ToF32(d));
  for (int i = 0; i < 32; ++i) {
    q[i] = static_cast<uint8_t>(Levels::Nearest(x[i] * inverse) + offset);
  }
  return d;
}

struct ScaleAndMin {
  uint16_t d;
  uint16_t m;
};

template <int max_quant>
ScaleAndMin Line(const float* x, const float* importance, const Starts& starts,
                 uint8_t q[32]) {
  float weights[32];
  FillWeights<32>(x, importance, weights);
  const LineFit fit = FitLine<max_quant, false, 32>(x, weights, starts);
  ScaleAndMin stored = {ToStoredF16(fit.scale), ToStoredF16(fit.base)};
  if (stored.d == 0) {
    // All values alike, or a scale below float16: the mean serves best.
    float sum = 0.0f;
    for (int i = 0; i < 32; ++i) sum += x[i] / 32.0f;
    stored.m = ToStoredF16(sum);
  }
  const float inverse = Inverse(F16ToF32(stored.d)), base = F16ToF32(stored.m);
  for (int i = 0; i < 32; ++i) {
    q[i] = static_cast<uint8_t>(
        LinearLevels<0, max_quant>::Nearest((x[i] - base) * inverse));
  }
  return stored;
}

inline void EncodeRow(const float* src, const float* importance,
                      BlockQ4_0* blocks, int64_t n) {
  uint8_t q[32];
  for (int64_t b = 0; b < n / 32; ++b) {
    blocks[b].d =
        Symmetric<8>(src + 32 * b, At(importance, 32 * b), kStarts4, q);
    PackNibbles(q, blocks[b].qs);
  }
}

inline void EncodeRow(const float* src, const float* importance,
                      BlockQ5_0* blocks, int64_t n) {
  uint8_t q[32];
  for (int64_t b = 0; b < n / 32; ++b) {
    blocks[b].d =
        Symmetric<16>(src + 32 * b, At(importance, 32 * b), kStarts5, q);
    PackNibbles(q, blocks[b].qs);
    PackFifthBits(q, blocks[b].qh);
  }
}

inline void EncodeRow(const float* src, const float* importance,
                      BlockQ4_1* blocks, int64_t n) {
  uint8_t q[32];
  for (int64_t b = 0; b < n / 32; ++b) {
    const ScaleAndMin fit =
        Line<15>(src + 32 * b, At(importance, 32 * b), kLineStarts4, q);
    blocks[b].d = fit.d;
    blocks[b].m = fit.m;
    PackNibbles(q, blocks[b].qs);
  }
}

inline void EncodeRow(const float* src, const float* importance,
                      BlockQ5_1* blocks, int64_t n) {
  uint8_t q[32];
  for (int64_t b = 0; b < n / 32; ++b) {
    const ScaleAndMin fit =
        Line<31>(src + 32 * b, At(importance, 32 * b), kLineStarts5, q);
    blocks[b].d = fit.d;
    blocks[b].m = fit.m;
    PackNibbles(q, blocks[b].qs);
    PackFifthBits(q, blocks[b].qh);
  }
}

// 255 levels leave a search nothing to gain: the largest value is +-127, and
// -128 is never written, so negating a quant is safe. Integers are rounded for
// the scale before it is rounded to float16, ties away from zero, as other
// programs do it: the file has the bytes that they write, at 0.1% more error
// than the least. Only where float16 runs out of digits does the stored scale
// count: there it would cost half a level.
inline void EncodeRow(const float* src, const float* /*importance*/,
                      BlockQ8_0* blocks, int64_t n) {
  for (int64_t b = 0; b < n / 32; ++b) {
    const float* x = src + 32 * b;
    float largest = 0.0f;
    for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float d = largest / 127.0f;
    blocks[b].d = F32ToF16(d);
    const float inverse = Inverse(d < 0x1p-18f ? F16ToF32(blocks[b].d) : d);
    for (int i = 0; i < 32; ++i) {
      const float q = std::round(x[i] * inverse);
      blocks[b].qs[i] =
          static_cast<int8_t>(std::min(std::max(q, -127.0f), 127.0f));
    }
  }
}

}  // namespace
}  // namespace quantize
}  // namespace weft
