// The IQ4 types: four bits index a codebook of 16 uneven levels.

#include "ops/quantize/families.h"
#include "ops/quantize/fit.h"
#include "ops/quantize/fit_scale.h"

namespace weft {
namespace quantize {
namespace {

constexpr Starts kStarts = {0.75f, 1.25f, 20, true};

void PackIndices(const float* x, float scale, uint8_t qs[16]) {
  const float inverse = Inverse(scale);
  for (int i = 0; i < 16; ++i) {
    qs[i] = static_cast<uint8_t>(
        CodebookLevels::NearestIndex(x[i] * inverse) |
        (CodebookLevels::NearestIndex(x[i + 16] * inverse) << 4));
  }
}

}  // namespace

void ToIQ4_NL(const float* src, void* dst, int64_t n) {
  BlockIQ4_NL* blocks = static_cast<BlockIQ4_NL*>(dst);
  float weights[kBlockSize];
  for (int64_t b = 0; b < n / kBlockSize; ++b) {
    const float* x = src + kBlockSize * b;
    FillWeights<kBlockSize>(x, weights);
    blocks[b].d =
        ToStoredF16(FitScale<CodebookLevels, kBlockSize>(x, weights, kStarts));
    PackIndices(x, F16ToF32(blocks[b].d), blocks[b].qs);
  }
}

void ToIQ4_XS(const float* src, void* dst, int64_t n) {
  BlockIQ4_XS* blocks = static_cast<BlockIQ4_XS*>(dst);
  float weights[kSuperBlockSize];
  for (int64_t b = 0; b < n / kSuperBlockSize; ++b) {
    const float* x = src + kSuperBlockSize * b;
    FillWeights<kSuperBlockSize>(x, weights);
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

}  // namespace quantize
}  // namespace weft
