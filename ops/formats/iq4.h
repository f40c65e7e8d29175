// The IQ4 types: four bits index a codebook of 16 uneven levels.
#pragma once

#include <cstring>

#include "ops/formats/fit.h"
#include "ops/formats/fit_scale.h"
#include "ops/formats/format.h"

namespace weft {

#pragma pack(push, 1)

struct BlockIQ4_NL {
  uint16_t d;
  uint8_t qs[16];  // indices into IQ4Levels::kValues, ordered as in Q4_0
};
struct BlockIQ4_XS {
  uint16_t d;
  uint16_t scales_h;  // bits 2b: top bits of the scale of elements 32b..32b+31
  uint8_t scales_l[4];  // nibble b: low bits
  uint8_t qs[128];      // per 32 elements as in IQ4_NL
};

#pragma pack(pop)

// The 16 values that an index stands for: denser near zero, as weights are.
struct IQ4Levels {
  static constexpr int8_t kValues[16] = {
      -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
};

// --- Format ---

template <>
struct BlockFormat<BlockIQ4_NL>
    : FormatOf<BlockIQ4_NL, LevelCodes<IQ4Levels, 128>, PanelScales::kHalf, 1> {
};

template <>
struct BlockFormat<BlockIQ4_XS>
    : FormatOf<BlockIQ4_XS, LevelCodes<IQ4Levels, 128>, PanelScales::kSubScale,
               1> {};

// --- Decoder ---

// IQ4_XS, group g of 32 elements (0-7): -32 to 31.
static inline int ScaleOfIQ4_XS(const BlockIQ4_XS& block, int g) {
  const int low = (block.scales_l[g / 2] >> (4 * (g % 2))) & 15;
  const int high = (block.scales_h >> (2 * g)) & 3;
  return (low | (high << 4)) - 32;
}

static inline void LookUpIQ4(const uint8_t qs[16], int8_t q[32]) {
  for (int i = 0; i < 16; ++i) {
    q[i] = IQ4Levels::kValues[qs[i] & 15];
    q[i + 16] = IQ4Levels::kValues[qs[i] >> 4];
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

static inline uint8_t ReadPlane(const BlockIQ4_XS& block, int b, int) {
  return static_cast<uint8_t>(ScaleOfIQ4_XS(block, b));
}

static inline void ReadCodes(const BlockIQ4_NL* row, int64_t b,
                             uint8_t codes[32]) {
  ReadNibbles(row[b].qs, codes);
}
static inline void ReadCodes(const BlockIQ4_XS* row, int64_t b,
                             uint8_t codes[32]) {
  ReadNibbles(row[b / 8].qs + 16 * (b % 8), codes);
}

// --- Encoder ---

namespace quantize {
namespace {

// The IQ4 codebook. Midpoints between neighbours are multiples of 1/2, so the
// cell of floor(2 * value) lies in one level's range.
struct CodebookLevels {
  static constexpr float kLow = IQ4Levels::kValues[0];
  static int NearestIndex(float value) {
    const float limited = std::min(std::max(value, -128.0f), 127.0f);
    return Table().index[static_cast<int>(2.0f * (limited + 128.0f))];
  }
  static float Nearest(float value) {
    return IQ4Levels::kValues[NearestIndex(value)];
  }

 private:
  struct Cells {
    uint8_t index[512];
    Cells() {
      for (int cell = 0; cell < 512; ++cell) {
        const float value = 0.5f * static_cast<float>(cell) - 128.0f + 0.25f;
        int best = 0;
        for (int i = 1; i < 16; ++i) {
          if (std::fabs(value - IQ4Levels::kValues[i]) <
              std::fabs(value - IQ4Levels::kValues[best])) {
            best = i;
          }
        }
        index[cell] = static_cast<uint8_t>(best);
      }
    }
  };
  static const Cells& Table() {
    static const Cells cells;
    return cells;
  }
};

constexpr Starts kStarts = {0.75f, 1.25f, 20, true};

inline void PackIndices(const float* x, float scale, uint8_t qs[16]) {
  const float inverse = Inverse(scale);
  for (int i = 0; i < 16; ++i) {
    qs[i] = static_cast<uint8_t>(
        CodebookLevels::NearestIndex(x[i] * inverse) |
        (CodebookLevels::NearestIndex(x[i + 16] * inverse) << 4));
  }
}

inline void EncodeRow(const float* src, const float* importance,
                      BlockIQ4_NL* blocks, int64_t n) {
  float weights[kBlockSize];
  for (int64_t b = 0; b < n / kBlockSize; ++b) {
    const float* x = src + kBlockSize * b;
    FillWeights<kBlockSize>(x, At(importance, kBlockSize * b), weights);
    blocks[b].d =
        ToStoredF16(FitScale<CodebookLevels, kBlockSize>(x, weights, kStarts));
    PackIndices(x, F16ToF32(blocks[b].d), blocks[b].qs);
  }
}

inline void EncodeRow(const float* src, const float* importance,
                      BlockIQ4_XS* blocks, int64_t n) {
  float weights[kSuperBlockSize];
  for (int64_t b = 0; b < n / kSuperBlockSize; ++b) {
    const float* x = src + kSuperBlockSize * b;
    FillWeights<kSuperBlockSize>(x, At(importance, kSuperBlockSize * b),
                                 weights);
    const auto fit =
        FitScaledSuperBlock<CodebookLevels, 32, -32, 31>(x, weights, kStarts);
    BlockIQ4_XS block = {fit.d, 0, {}, {}};
    for (int g = 0; g < 8; ++g) {
      const int scale = fit.scales[g] + 32;
      block.scales_l[g / 2] |=
          static_cast<uint8_t>((scale & 15) << (4 * (g % 2)));
      block.scales_h =
          static_cast<uint16_t>(block.scales_h | ((scale >> 4) << (2 * g)));
      PackIndices(x + 32 * g, F16ToF32(fit.d) * fit.scales[g],
                  block.qs + 16 * g);
    }
    blocks[b] = block;
  }
}

}  // namespace
}  // namespace quantize
}  // namespace weft
