// The K types: 256 elements share d; groups of 16 or 32 have small integer
// scales.
//
// fit.h finds d and the integers; this file rounds the elements to them and
// puts the bits where ops/kernels/blocks.h says.

#include <cstring>

#include "ops/quantize/families.h"
#include "ops/quantize/fit.h"
#include "ops/quantize/fit_line.h"
#include "ops/quantize/fit_scale.h"

namespace weft {
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
void PackTwoBits(const uint8_t q[256], uint8_t qs[64]) {
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
void PackFourBits(const uint8_t q[256], uint8_t qs[128]) {
  for (int c = 0; c < 4; ++c) {
    for (int i = 0; i < 32; ++i) {
      qs[32 * c + i] = static_cast<uint8_t>((q[64 * c + i] & 15) |
                                            ((q[64 * c + 32 + i] & 15) << 4));
    }
  }
}

// Eight scales and eight minimums of 6 bits: the inverse of ScaleOfQ4_K,
// MinOfQ4_K.
void PackScales(const LineSuperBlock<32>& fit, uint8_t packed[12]) {
  for (int g = 0; g < 4; ++g) {
    const int high_scale = fit.scales[g + 4] >> 4,
              high_min = fit.mins[g + 4] >> 4;
    packed[g] = static_cast<uint8_t>(fit.scales[g] | (high_scale << 6));
    packed[g + 4] = static_cast<uint8_t>(fit.mins[g] | (high_min << 6));
    packed[g + 8] = static_cast<uint8_t>((fit.scales[g + 4] & 15) |
                                         ((fit.mins[g + 4] & 15) << 4));
  }
}

}  // namespace

void ToQ2_K(const float* src, void* dst, int64_t n) {
  BlockQ2_K* blocks = static_cast<BlockQ2_K*>(dst);
  float weights[kSuperBlockSize];
  uint8_t q[kSuperBlockSize];
  for (int64_t b = 0; b < n / kSuperBlockSize; ++b) {
    const float* x = src + kSuperBlockSize * b;
    FillWeights<kSuperBlockSize>(x, weights);
    const auto fit = FitLineSuperBlock<3, 16, 15>(x, weights, kStartsQ2_K);
    Round<3>(x, fit, q);
    blocks[b].d = fit.d;
    blocks[b].dmin = fit.dmin;
    for (int g = 0; g < 16; ++g) {
      blocks[b].scales[g] =
          static_cast<uint8_t>(fit.scales[g] | (fit.mins[g] << 4));
    }
    PackTwoBits(q, blocks[b].qs);
  }
}

void ToQ3_K(const float* src, void* dst, int64_t n) {
  BlockQ3_K* blocks = static_cast<BlockQ3_K*>(dst);
  float weights[kSuperBlockSize];
  uint8_t q[kSuperBlockSize];
  for (int64_t b = 0; b < n / kSuperBlockSize; ++b) {
    const float* x = src + kSuperBlockSize * b;
    FillWeights<kSuperBlockSize>(x, weights);
    const auto fit = FitScaledSuperBlock<LinearLevels<-4, 3>, 16, -32, 31>(
        x, weights, kStartsQ3_K);
    Round<4>(x, fit, q);
    BlockQ3_K& block = blocks[b];
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
      block.scales[g % 8] |=
          static_cast<uint8_t>((scale & 15) << (4 * (g / 8)));
      block.scales[8 + g % 4] |=
          static_cast<uint8_t>((scale >> 4) << (2 * (g / 4)));
    }
  }
}

void ToQ4_K(const float* src, void* dst, int64_t n) {
  BlockQ4_K* blocks = static_cast<BlockQ4_K*>(dst);
  float weights[kSuperBlockSize];
  uint8_t q[kSuperBlockSize];
  for (int64_t b = 0; b < n / kSuperBlockSize; ++b) {
    const float* x = src + kSuperBlockSize * b;
    FillWeights<kSuperBlockSize>(x, weights);
    const auto fit = FitLineSuperBlock<15, 32, 63>(x, weights, kStartsQ4_K);
    Round<15>(x, fit, q);
    blocks[b].d = fit.d;
    blocks[b].dmin = fit.dmin;
    PackScales(fit, blocks[b].scales);
    PackFourBits(q, blocks[b].qs);
  }
}

void ToQ5_K(const float* src, void* dst, int64_t n) {
  BlockQ5_K* blocks = static_cast<BlockQ5_K*>(dst);
  float weights[kSuperBlockSize];
  uint8_t q[kSuperBlockSize];
  for (int64_t b = 0; b < n / kSuperBlockSize; ++b) {
    const float* x = src + kSuperBlockSize * b;
    FillWeights<kSuperBlockSize>(x, weights);
    const auto fit = FitLineSuperBlock<31, 32, 63>(x, weights, kStartsQ5_K);
    Round<31>(x, fit, q);
    blocks[b].d = fit.d;
    blocks[b].dmin = fit.dmin;
    PackScales(fit, blocks[b].scales);
    PackFourBits(q, blocks[b].qs);
    for (int i = 0; i < 32; ++i) {
      int high = 0;
      for (int g = 0; g < 8; ++g) high |= (q[32 * g + i] >> 4) << g;
      blocks[b].qh[i] = static_cast<uint8_t>(high);
    }
  }
}

void ToQ6_K(const float* src, void* dst, int64_t n) {
  BlockQ6_K* blocks = static_cast<BlockQ6_K*>(dst);
  float weights[kSuperBlockSize];
  uint8_t q[kSuperBlockSize];
  for (int64_t b = 0; b < n / kSuperBlockSize; ++b) {
    const float* x = src + kSuperBlockSize * b;
    FillWeights<kSuperBlockSize>(x, weights);
    const auto fit = FitScaledSuperBlock<LinearLevels<-32, 31>, 16, -128, 127>(
        x, weights, kStartsQ6_K);
    Round<32>(x, fit, q);
    BlockQ6_K& block = blocks[b];
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
}

}  // namespace quantize
}  // namespace weft
