// MXFP4 (OCP Microscaling Formats 1.0, 2023): blocks of 32 codes E2M1 with one
// scale E8M0, a power of two.
//
// Levels are doubled to be integers and the scale halved. Exponent 255, which
// is NaN in the standard, is read as 2^128, as other programs do.
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

// Writes the codes for a scale and returns their squared error.
inline double EncodeE2M1(const float* x, int e, BlockMXFP4* block) {
  uint8_t codes[32];
  double error = 0.0;
  for (int i = 0; i < 32; ++i) {
    const float value = std::ldexp(x[i], 128 - e);
    codes[i] = NearestE2M1(value);
    const double rest =
        double{x[i]} -
        std::ldexp(static_cast<double>(E2M1Levels::kValues[codes[i]]), e - 128);
    error += rest * rest;
  }
  block->e = static_cast<uint8_t>(e);
  for (int i = 0; i < 16; ++i) {
    block->qs[i] = static_cast<uint8_t>(codes[i] | codes[i + 16] << 4);
  }
  return error;
}

// The scale for which the largest value is at least 4, and the one above, where
// nothing is cut off: the better of the two.
inline void EncodeRow(const float* src, BlockMXFP4* blocks, int64_t n) {
  for (int64_t b = 0; b < n / 32; ++b) {
    const float* x = src + 32 * b;
    float largest = 0.0f;
    for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(x[i]));
    const int e =
        largest > 0.0f
            ? std::min(std::max(std::ilogb(largest) - 2 + 127, 0), 253)
            : 0;
    const double error = EncodeE2M1(x, e, &blocks[b]);
    BlockMXFP4 above;
    if (EncodeE2M1(x, e + 1, &above) < error) blocks[b] = above;
  }
}

}  // namespace
}  // namespace quantize
}  // namespace weft
