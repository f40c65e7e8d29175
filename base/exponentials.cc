// e^x = 2^k e^r with a whole k and |r| <= ln(2)/2, where 14 terms of the Taylor
// series are exact to a unit or so of the last place. No operation depends on
// its neighbours, so the width of registers does not change the result.
#include "base/exponentials.h"

#include <cstdint>
#include <cstring>

namespace weft {
namespace {

constexpr double kLeast = -708;
// Adding it leaves the whole part in the lowest bits (ties to even).
constexpr double kWhole = 0x1.8p52;
constexpr double kLog2E = 0x1.71547652b82fep+0;
// ln(2) in two parts; the first has so few bits that products with k are exact.
constexpr double kLn2High = 0x1.62e42fefa0000p-1;
constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
constexpr uint64_t kOne = uint64_t{0x3ff} << 52;

inline __attribute__((always_inline)) void Compute(double* p, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double x = p[i] < kLeast ? kLeast : p[i];
    const double shifted = x * kLog2E + kWhole;
    const double k = shifted - kWhole;
    const double r = (x - k * kLn2High) - k * kLn2Low;
    double sum = 1.0 / 6227020800;
    sum = sum * r + 1.0 / 479001600;
    sum = sum * r + 1.0 / 39916800;
    sum = sum * r + 1.0 / 3628800;
    sum = sum * r + 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 1.0 / 2;
    sum = sum * r + 1.0;
    sum = sum * r + 1.0;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits << 52) + kOne;  // the exponent k
    double scale;
    memcpy(&scale, &bits, sizeof(scale));
    p[i] = p[i] < kLeast ? 0.0 : sum * scale;
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void ComputeAvx2(double* p, int64_t size) {
  Compute(p, size);
}

__attribute__((target("avx512f"))) void ComputeAvx512(double* p, int64_t size) {
  Compute(p, size);
}
#endif

}  // namespace

void Exponentials(absl::Span<double> values) {
  const int64_t size = static_cast<int64_t>(values.size());
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    return ComputeAvx512(values.data(), size);
  }
  if (__builtin_cpu_supports("avx2")) return ComputeAvx2(values.data(), size);
#endif
  Compute(values.data(), size);
}

}  // namespace weft
