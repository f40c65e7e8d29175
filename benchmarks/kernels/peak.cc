#include "benchmarks/kernels/peak.h"

#include "ops/kernels/cpu.h"

namespace weft {

#if defined(__x86_64__)
// GCC accepts the instructions whatever the flags of this file.
#define WEFT_DOT(I) "vpdpbusd %%zmm30,%%zmm31,%%zmm" #I "\n"
bool RunDotProducts(int64_t count) {
  if (!Includes(DetectIsa(), Isa::kAvx512Vnni)) return false;
  for (int64_t i = 0; i < count; i += 12) {
    __asm__ volatile(WEFT_DOT(0) WEFT_DOT(1) WEFT_DOT(2) WEFT_DOT(3) WEFT_DOT(4)
                         WEFT_DOT(5) WEFT_DOT(6) WEFT_DOT(7) WEFT_DOT(8)
                             WEFT_DOT(9) WEFT_DOT(10) WEFT_DOT(11)
                     :
                     :
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
                       "xmm7", "xmm8", "xmm9", "xmm10", "xmm11");
  }
  return true;
}
#undef WEFT_DOT
#else
bool RunDotProducts(int64_t) { return false; }
#endif

uint64_t ReadOnce(const uint8_t* data, int64_t bytes) {
  typedef uint64_t Vector __attribute__((vector_size(16)));
  Vector sum[4] = {};
  for (int64_t i = 0; i < bytes; i += 64) {
    // As the kernels do: DRAM latency is covered by asking ahead.
    __builtin_prefetch(data + i + 4096);
    const Vector* p = reinterpret_cast<const Vector*>(data + i);
    for (int j = 0; j < 4; ++j) sum[j] ^= p[j];
  }
  const Vector all = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
  return all[0] ^ all[1];
}

}  // namespace weft
