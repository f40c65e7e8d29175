// Types with two to four levels and one scale: TQ1_0 and TQ2_0 for models that
// were trained ternary, Q1_0 and Q2_0 for binary ones and their like.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/formats/fit.h"
#include "ops/formats/fit_scale.h"
#include "ops/formats/format.h"

namespace weft {

#pragma pack(push, 1)

struct BlockTQ1_0 {
  // Five digits to the base 3 a byte, the byte a fraction of 256: multiplied by
  // 3, it carries its next digit. Digit n of byte m < 32 is element 32n + m, of
  // byte 32 + m < 48 element 160 + 16n + m, of byte 48 + m element 240 + 4n + m
  // (n < 4).
  uint8_t qs[52];
  uint16_t d;
};
struct BlockTQ2_0 {
  uint8_t qs[64];  // byte 32h+i, bits 2j: element 128h+32j+i
  uint16_t d;
};
struct BlockQ1_0 {
  uint16_t d;
  uint8_t qs[16];  // a bit for each element: d, or -d
};
struct BlockQ2_0 {
  uint16_t d;
  uint8_t qs[16];  // two bits for each element
};

#pragma pack(pop)

struct BinaryLevels {
  static constexpr int8_t kValues[16] = {-1, 1};
};

// --- Format ---

template <>
struct BlockFormat<BlockTQ1_0>
    : FormatOf<BlockTQ1_0, TernaryCodes, PanelScales::kHalf, 1> {};
template <>
struct BlockFormat<BlockTQ2_0>
    : FormatOf<BlockTQ2_0, BitCodes<2, 0, 1>, PanelScales::kHalf, 1> {};
template <>
struct BlockFormat<BlockQ1_0>
    : FormatOf<BlockQ1_0, LevelCodes<BinaryLevels, 1, 1>, PanelScales::kHalf,
               1> {};
template <>
struct BlockFormat<BlockQ2_0>
    : FormatOf<BlockQ2_0, BitCodes<2, 0, 1>, PanelScales::kHalf, 1> {};

// --- Decoder ---

// Where digit i of the 32 elements of block b is: byte, and digit of that byte.
struct TernaryPlace {
  int byte, digit;
};
static inline TernaryPlace PlaceOfDigit(int b, int i) {
  if (b < 5) return {i, b};
  if (b < 7) return {32 + i % 16, 2 * (b - 5) + i / 16};
  if (i < 16) return {32 + i, 4};
  return {48 + i % 4, (i - 16) / 4};
}

static inline int TernaryDigit(uint8_t byte, int digit) {
  for (int i = 0; i < digit; ++i) byte = static_cast<uint8_t>(3 * byte);
  return 3 * byte >> 8;
}

static inline void DecodeBlock(const BlockTQ1_0* row, int64_t b,
                               Decoded32* out) {
  const BlockTQ1_0& block = row[b / 8];
  SetScale(out, F16ToF32(block.d), 0.0f);
  for (int i = 0; i < 32; ++i) {
    const TernaryPlace place = PlaceOfDigit(static_cast<int>(b % 8), i);
    out->q[i] = static_cast<int8_t>(
        TernaryDigit(block.qs[place.byte], place.digit) - 1);
  }
}

static inline void DecodeBlock(const BlockTQ2_0* row, int64_t b,
                               Decoded32* out) {
  const BlockTQ2_0& block = row[b / 8];
  SetScale(out, F16ToF32(block.d), 0.0f);
  const uint8_t* qs = block.qs + 32 * (b % 8 / 4);
  const int shift = 2 * static_cast<int>(b % 4);
  for (int i = 0; i < 32; ++i) {
    out->q[i] = static_cast<int8_t>((qs[i] >> shift & 3) - 1);
  }
}

static inline void DecodeBlock(const BlockQ1_0* row, int64_t b,
                               Decoded32* out) {
  const BlockQ1_0& block = row[b / 4];
  SetScale(out, F16ToF32(block.d), 0.0f);
  const uint8_t* qs = block.qs + 4 * (b % 4);
  for (int i = 0; i < 32; ++i) {
    out->q[i] = BinaryLevels::kValues[qs[i / 8] >> (i % 8) & 1];
  }
}

static inline void ReadCodes(const BlockQ1_0* row, int64_t b,
                             uint8_t codes[32]) {
  const uint8_t* qs = row[b / 4].qs + 4 * (b % 4);
  for (int i = 0; i < 32; ++i) codes[i] = qs[i / 8] >> (i % 8) & 1;
}

static inline void DecodeBlock(const BlockQ2_0* row, int64_t b,
                               Decoded32* out) {
  const BlockQ2_0& block = row[b / 2];
  SetScale(out, F16ToF32(block.d), 0.0f);
  const uint8_t* qs = block.qs + 8 * (b % 2);
  for (int i = 0; i < 32; ++i) {
    out->q[i] = static_cast<int8_t>((qs[i / 4] >> (2 * (i % 4)) & 3) - 1);
  }
}

// --- Encoder ---

namespace quantize {
namespace {

// Models trained ternary have exactly these levels: the largest value is d.
constexpr Starts kStartsTernary = {0.5f, 3.0f, 24, false};
constexpr Starts kStartsQ2_0 = {0.5f, 2.5f, 20, true};

template <class Levels, int n>
uint16_t FitHalf(const float* x, const float* importance) {
  float weights[n];
  FillWeights<n>(x, importance, weights);
  constexpr Starts starts = n == kSuperBlockSize ? kStartsTernary : kStartsQ2_0;
  return ToStoredF16(FitScale<Levels, n>(x, weights, starts));
}

// Digits 0 to 2 of a ternary super-block.
inline uint16_t TernaryDigits(const float* x, const float* importance,
                              uint8_t digits[kSuperBlockSize]) {
  const uint16_t d =
      FitHalf<LinearLevels<-1, 1>, kSuperBlockSize>(x, importance);
  const float inverse = Inverse(F16ToF32(d));
  for (int i = 0; i < kSuperBlockSize; ++i) {
    digits[i] = static_cast<uint8_t>(
        LinearLevels<-1, 1>::Nearest(x[i] * inverse) + 1.0f);
  }
  return d;
}

inline void EncodeRow(const float* src, const float* importance,
                      BlockTQ1_0* blocks, int64_t n) {
  uint8_t digits[kSuperBlockSize];
  for (int64_t b = 0; b < n / kSuperBlockSize; ++b) {
    const int64_t at = b * kSuperBlockSize;
    blocks[b].d = TernaryDigits(src + at, At(importance, at), digits);
    int numbers[52][5] = {};
    for (int i = 0; i < kSuperBlockSize; ++i) {
      const TernaryPlace place = PlaceOfDigit(i / 32, i % 32);
      numbers[place.byte][place.digit] = digits[i];
    }
    for (int m = 0; m < 52; ++m) {
      int number = 0;
      for (int digit : numbers[m]) number = 3 * number + digit;
      // Rounded up, so that the fraction is not below the number.
      blocks[b].qs[m] = static_cast<uint8_t>((256 * number + 242) / 243);
    }
  }
}

inline void EncodeRow(const float* src, const float* importance,
                      BlockTQ2_0* blocks, int64_t n) {
  uint8_t digits[kSuperBlockSize];
  for (int64_t b = 0; b < n / kSuperBlockSize; ++b) {
    const int64_t at = b * kSuperBlockSize;
    blocks[b].d = TernaryDigits(src + at, At(importance, at), digits);
    for (int m = 0; m < 64; ++m) {
      int packed = 0;
      for (int j = 0; j < 4; ++j) {
        packed |= digits[128 * (m / 32) + 32 * j + m % 32] << (2 * j);
      }
      blocks[b].qs[m] = static_cast<uint8_t>(packed);
    }
  }
}

// The best d for signs is the mean magnitude.
inline void EncodeRow(const float* src, const float* importance,
                      BlockQ1_0* blocks, int64_t n) {
  float weights[128];
  for (int64_t b = 0; b < n / 128; ++b) {
    const float* x = src + 128 * b;
    FillWeights<128>(x, At(importance, 128 * b), weights);
    double sum = 0.0, weight = 0.0;
    std::memset(blocks[b].qs, 0, sizeof(blocks[b].qs));
    for (int i = 0; i < 128; ++i) {
      sum += double{weights[i]} * std::fabs(x[i]);
      weight += weights[i];
      if (!std::signbit(x[i])) {
        blocks[b].qs[i / 8] |= static_cast<uint8_t>(1 << (i % 8));
      }
    }
    blocks[b].d =
        ToStoredF16(weight > 0.0 ? static_cast<float>(sum / weight) : 0.0f);
  }
}

inline void EncodeRow(const float* src, const float* importance,
                      BlockQ2_0* blocks, int64_t n) {
  for (int64_t b = 0; b < n / 64; ++b) {
    const float* x = src + 64 * b;
    blocks[b].d = FitHalf<LinearLevels<-1, 2>, 64>(x, At(importance, 64 * b));
    const float inverse = Inverse(F16ToF32(blocks[b].d));
    std::memset(blocks[b].qs, 0, sizeof(blocks[b].qs));
    for (int i = 0; i < 64; ++i) {
      const int code =
          static_cast<int>(LinearLevels<-1, 2>::Nearest(x[i] * inverse) + 1.0f);
      blocks[b].qs[i / 4] |= static_cast<uint8_t>(code << (2 * (i % 4)));
    }
  }
}

}  // namespace
}  // namespace quantize
}  // namespace weft
