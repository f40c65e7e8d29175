// The older types: each block of 32 has its own float16 scale (and minimum).
//
// The scale is searched in float, rounded to float16 as stored, and the
// integers are the nearest ones for the stored scale.

#include <cstring>

#include "ops/quantize/families.h"
#include "ops/quantize/fit.h"
#include "ops/quantize/fit_line.h"
#include "ops/quantize/fit_scale.h"

namespace weft {
namespace quantize {
namespace {

constexpr Starts kStarts4 = {0.75f, 1.3f, 22, true};
constexpr Starts kStarts5 = {0.85f, 1.15f, 16, true};
constexpr Starts kLineStarts4 = {0.85f, 1.25f, 16, false};
constexpr Starts kLineStarts5 = {0.9f, 1.1f, 12, false};

// Integers 0..31 (offset added where the type has one) into nibbles and fifth
// bits.
void PackNibbles(const uint8_t q[32], uint8_t qs[16]) {
  for (int i = 0; i < 16; ++i) {
    qs[i] = static_cast<uint8_t>((q[i] & 15) | ((q[i + 16] & 15) << 4));
  }
}
void PackFifthBits(const uint8_t q[32], uint8_t qh[4]) {
  uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) bits |= static_cast<uint32_t>(q[i] >> 4) << i;
  std::memcpy(qh, &bits, sizeof(bits));
}

template <int offset>
uint16_t Symmetric(const float* x, const Starts& starts, uint8_t q[32]) {
  using Levels = LinearLevels<-offset, offset - 1>;
  float weights[32];
  FillWeights<32>(x, weights);
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
ScaleAndMin Line(const float* x, const Starts& starts, uint8_t q[32]) {
  float weights[32];
  FillWeights<32>(x, weights);
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

}  // namespace

void ToQ4_0(const float* src, void* dst, int64_t n) {
  BlockQ4_0* blocks = static_cast<BlockQ4_0*>(dst);
  uint8_t q[32];
  for (int64_t b = 0; b < n / 32; ++b) {
    blocks[b].d = Symmetric<8>(src + 32 * b, kStarts4, q);
    PackNibbles(q, blocks[b].qs);
  }
}

void ToQ5_0(const float* src, void* dst, int64_t n) {
  BlockQ5_0* blocks = static_cast<BlockQ5_0*>(dst);
  uint8_t q[32];
  for (int64_t b = 0; b < n / 32; ++b) {
    blocks[b].d = Symmetric<16>(src + 32 * b, kStarts5, q);
    PackNibbles(q, blocks[b].qs);
    PackFifthBits(q, blocks[b].qh);
  }
}

void ToQ4_1(const float* src, void* dst, int64_t n) {
  BlockQ4_1* blocks = static_cast<BlockQ4_1*>(dst);
  uint8_t q[32];
  for (int64_t b = 0; b < n / 32; ++b) {
    const ScaleAndMin fit = Line<15>(src + 32 * b, kLineStarts4, q);
    blocks[b].d = fit.d;
    blocks[b].m = fit.m;
    PackNibbles(q, blocks[b].qs);
  }
}

void ToQ5_1(const float* src, void* dst, int64_t n) {
  BlockQ5_1* blocks = static_cast<BlockQ5_1*>(dst);
  uint8_t q[32];
  for (int64_t b = 0; b < n / 32; ++b) {
    const ScaleAndMin fit = Line<31>(src + 32 * b, kLineStarts5, q);
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
void ToQ8_0(const float* src, void* dst, int64_t n) {
  BlockQ8_0* blocks = static_cast<BlockQ8_0*>(dst);
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

}  // namespace quantize
}  // namespace weft
