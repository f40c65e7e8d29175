// Codes of four bits that are floats, E2M1: MXFP4 (OCP Microscaling
// Formats 1.0, 2023) in blocks of 32 with one scale E8M0, a power of two, and
// NVFP4 in groups of 16 with an unsigned scale E4M3.
//
// Levels are doubled to be integers and the scale halved. Exponent 255 of E8M0,
// which is NaN in the standard, is read as 2^128, as other programs do. Scales
// of NVFP4 have no sign: bit 7 is left out, but 0x7f, the NaN, is 0 and 0xff is
// 480, again as elsewhere. NVFP4 files have a factor for each matrix beside it,
// which is the model's affair (loaders).
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/formats/fit.h"
#include "ops/formats/format.h"

namespace weft {

struct BlockMXFP4 {
  uint8_t e;       // the scale is 2^(e - 127)
  uint8_t qs[16];  // codes, ordered as in Q4_0
};

struct BlockNVFP4 {
  uint8_t scales[4];  // per 16 elements
  uint8_t qs[32];     // per 16 elements 8 bytes, elements i and 8 + i of them
};

// Twice 0, 0.5, 1, 1.5, 2, 3, 4, 6; bit 3 is the sign.
struct E2M1Levels {
  static constexpr int8_t kValues[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                         0, -1, -2, -3, -4, -6, -8, -12};
};

// --- Format ---

template <>
struct BlockFormat<BlockMXFP4>
    : FormatOf<BlockMXFP4, LevelCodes<E2M1Levels, 16>, PanelScales::kPowerOfTwo,
               1> {};

template <>
struct BlockFormat<BlockNVFP4>
    : FormatOf<BlockNVFP4, LevelCodes<E2M1Levels, 16>, PanelScales::kSmallFloat,
               2> {};

// --- Decoder ---

static inline void DecodeBlock(const BlockMXFP4* row, int64_t b,
                               Decoded32* out) {
  SetScale(out, HalfPowerOfTwo(row[b].e), 0.0f);
  for (int i = 0; i < 16; ++i) {
    out->q[i] = E2M1Levels::kValues[row[b].qs[i] & 15];
    out->q[i + 16] = E2M1Levels::kValues[row[b].qs[i] >> 4];
  }
}

static inline void ReadCodes(const BlockMXFP4* row, int64_t b,
                             uint8_t codes[32]) {
  ReadNibbles(row[b].qs, codes);
}

static inline uint8_t ReadPlane(const BlockMXFP4& block, int, int) {
  return block.e;
}

// The scale's bits, without what reads as 0 or 480 only by agreement.
static inline uint8_t ScaleBitsOfNVFP4(uint8_t scale) {
  return scale == 0x7f ? 0 : scale & 0x7f;
}

static inline void ReadCodes(const BlockNVFP4* row, int64_t b,
                             uint8_t codes[32]) {
  for (int i = 0; i < 32; ++i) {
    const uint8_t byte = row[b / 2].qs[16 * (b % 2) + i / 16 * 8 + i % 8];
    codes[i] = i % 16 < 8 ? byte & 15 : byte >> 4;
  }
}

static inline void DecodeBlock(const BlockNVFP4* row, int64_t b,
                               Decoded32* out) {
  for (int h = 0; h < 2; ++h) {
    out->scale[h] =
        HalfSmallFloat(ScaleBitsOfNVFP4(row[b / 2].scales[2 * (b % 2) + h]));
    out->min[h] = 0.0f;
  }
  uint8_t codes[32];
  ReadCodes(row, b, codes);
  for (int i = 0; i < 32; ++i) out->q[i] = E2M1Levels::kValues[codes[i]];
}

static inline uint8_t ReadPlane(const BlockNVFP4& block, int b, int p) {
  return ScaleBitsOfNVFP4(block.scales[2 * b + p]);
}

// --- Encoder ---

namespace quantize {
namespace {

// The code whose level is nearest to a value in units of half the scale. The
// doubled cells are as wide as the levels are apart.
inline uint8_t NearestE2M1(float value) {
  const float size = std::fabs(value);
  const int code = (size >= 0.5f) + (size >= 1.5f) + (size >= 2.5f) +
                   (size >= 3.5f) + (size >= 5.0f) + (size >= 7.0f) +
                   (size >= 10.0f);
  return static_cast<uint8_t>(value < 0.0f && code > 0 ? code + 8 : code);
}

// Codes of n values for half the scale, and their squared error.
inline double EncodeE2M1(const float* x, const float* weights, int n,
                         double half_scale, uint8_t* codes) {
  double error = 0.0;
  for (int i = 0; i < n; ++i) {
    codes[i] = half_scale > 0.0
                   ? NearestE2M1(static_cast<float>(x[i] / half_scale))
                   : uint8_t{0};
    const double rest = x[i] - half_scale * E2M1Levels::kValues[codes[i]];
    error += weights[i] * rest * rest;
  }
  return error;
}

inline double LargestMagnitude(const float* x, int n) {
  float largest = 0.0f;
  for (int i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest;
}

// The scale for which the largest value is at least 4, and the one above, where
// nothing is cut off: the better of the two.
inline void EncodeRow(const float* src, const float* importance,
                      BlockMXFP4* blocks, int64_t n) {
  float weights[32];
  for (int64_t b = 0; b < n / 32; ++b) {
    const float* x = src + 32 * b;
    FillErrorWeights<32>(At(importance, 32 * b), weights);
    const double largest = LargestMagnitude(x, 32);
    const int first =
        largest > 0.0
            ? std::min(std::max(std::ilogb(largest) - 2 + 127, 0), 253)
            : 0;
    double best = INFINITY;
    for (int e = first; e <= first + 1; ++e) {
      uint8_t codes[32];
      const double error =
          EncodeE2M1(x, weights, 32, std::ldexp(1.0, e - 128), codes);
      if (!(error < best)) continue;
      best = error;
      blocks[b].e = static_cast<uint8_t>(e);
      for (int i = 0; i < 16; ++i) {
        blocks[b].qs[i] = static_cast<uint8_t>(codes[i] | codes[i + 16] << 4);
      }
    }
  }
}

// Every scale from half to twice the one that cuts nothing off.
inline void EncodeRow(const float* src, const float* importance,
                      BlockNVFP4* blocks, int64_t n) {
  float weights[16];
  for (int64_t g = 0; g < n / 16; ++g) {
    const float* x = src + 16 * g;
    FillErrorWeights<16>(At(importance, 16 * g), weights);
    const double wanted = LargestMagnitude(x, 16) / 12.0;
    int first = 0;
    while (first < 0x7e &&
           2.0 * HalfSmallFloat(static_cast<uint8_t>(first + 1)) <= wanted) {
      ++first;
    }
    double best = INFINITY;
    for (int scale = first; scale <= 0x7e; ++scale) {
      const double half = HalfSmallFloat(static_cast<uint8_t>(scale));
      uint8_t codes[16];
      const double error = EncodeE2M1(x, weights, 16, half, codes);
      if (error < best) {
        best = error;
        blocks[g / 4].scales[g % 4] = static_cast<uint8_t>(scale);
        for (int i = 0; i < 8; ++i) {
          blocks[g / 4].qs[g % 4 * 8 + i] =
              static_cast<uint8_t>(codes[i] | codes[8 + i] << 4);
        }
      }
      if (half > 2.0 * wanted) break;
    }
  }
}

}  // namespace
}  // namespace quantize
}  // namespace weft
