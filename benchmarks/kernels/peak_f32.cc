#include "benchmarks/kernels/peak_f32.h"

#include <immintrin.h>

#include "ops/kernels/cpu.h"

namespace weft {
namespace {

__attribute__((target("avx512f"))) void MultiplyAdds(int64_t count) {
  __m512 sum[16];
  for (int i = 0; i < 16; ++i) sum[i] = _mm512_setzero_ps();
  const __m512 x = _mm512_set1_ps(0.5f);
  for (int64_t n = 0; n < count; n += 16) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) sum[i] = _mm512_fmadd_ps(sum[i], x, x);
  }
  // Keeps the loop.
  for (int i = 0; i < 16; ++i) __asm__ volatile("" : : "v"(sum[i]));
}

}  // namespace

bool RunMultiplyAdds(int64_t count) {
  if (!Includes(DetectIsa(), Isa::kAvx512)) return false;
  MultiplyAdds(count);
  return true;
}

}  // namespace weft
