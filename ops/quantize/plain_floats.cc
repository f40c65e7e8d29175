// Types without blocks: a copy, or rounding to nearest even.

#include <cstring>

#include "ops/kernels/half.h"
#include "ops/quantize/families.h"

namespace weft {
namespace quantize {
namespace {

template <uint16_t (*narrow)(float)>
void Narrow(const float* src, void* dst, int64_t n) {
  char* bytes = static_cast<char*>(dst);
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t value = narrow(src[i]);
    std::memcpy(bytes + 2 * i, &value, sizeof(value));
  }
}

}  // namespace

void ToF32(const float* src, void* dst, int64_t n) {
  std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
}
void ToF16(const float* src, void* dst, int64_t n) {
  Narrow<F32ToF16>(src, dst, n);
}
void ToBF16(const float* src, void* dst, int64_t n) {
  Narrow<F32ToBF16>(src, dst, n);
}

}  // namespace quantize
}  // namespace weft
