// In assembly, because a compiler may see through loops without a result, and
// because it takes the instructions whatever the flags of this file. Only
// registers 0 to 11 are written (all are inputs too, so they are zeroed first:
// denormal numbers would be slow).

#include "ops/kernels/peak.h"

namespace weft {
namespace {

#if defined(__x86_64__)

#define WEFT_TWELVE(OP) \
  OP(0) OP(1) OP(2) OP(3) OP(4) OP(5) OP(6) OP(7) OP(8) OP(9) OP(10) OP(11)
#define WEFT_ZERO(I) "vpxor %%xmm" #I ",%%xmm" #I ",%%xmm" #I "\n"
#define WEFT_CLOBBERS                                                     \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
      "xmm9", "xmm10", "xmm11", "xmm12", "cc"

// Register 12 is the other factor; all of it in one asm statement, so that no
// compiled code runs in between.
#define WEFT_SPIN(OP)                                                  \
  int64_t rounds = (count + 11) / 12;                                  \
  const int64_t done = rounds * 12;                                    \
  if (rounds > 0) {                                                    \
    __asm__ volatile(WEFT_TWELVE(WEFT_ZERO) WEFT_ZERO(12)            \
                     "1:\n" WEFT_TWELVE(OP) "dec %0\n"               \
                                            "jnz 1b\n"               \
                                            "vzeroupper\n"           \
                     : "+r"(rounds)                                  \
                     :                                               \
                     : WEFT_CLOBBERS); \
  }

#define WEFT_VNNI(I) "vpdpbusd %%zmm12,%%zmm12,%%zmm" #I "\n"
#define WEFT_MADD512(I)                   \
  "vpmaddubsw %%zmm12,%%zmm12,%%zmm" #I   \
  "\n"                                    \
  "vpmaddwd %%zmm12,%%zmm" #I ",%%zmm" #I \
  "\n"                                    \
  "vpaddd %%zmm12,%%zmm" #I ",%%zmm" #I "\n"
#define WEFT_MADD256(I)                   \
  "vpmaddubsw %%ymm12,%%ymm12,%%ymm" #I   \
  "\n"                                    \
  "vpmaddwd %%ymm12,%%ymm" #I ",%%ymm" #I \
  "\n"                                    \
  "vpaddd %%ymm12,%%ymm" #I ",%%ymm" #I "\n"
#define WEFT_BF16(I) "vdpbf16ps %%zmm12,%%zmm12,%%zmm" #I "\n"
#define WEFT_FMA512(I) "vfmadd231ps %%zmm12,%%zmm12,%%zmm" #I "\n"
#define WEFT_FMA256(I) "vfmadd231ps %%ymm12,%%ymm12,%%ymm" #I "\n"

int64_t RunVnni(int64_t count) {
  WEFT_SPIN(WEFT_VNNI)
  return done * 128;
}
int64_t RunMadd512(int64_t count) {
  WEFT_SPIN(WEFT_MADD512)
  return done * 128;
}
int64_t RunMadd256(int64_t count) {
  WEFT_SPIN(WEFT_MADD256)
  return done * 64;
}
int64_t RunBf16(int64_t count) {
  WEFT_SPIN(WEFT_BF16)
  return done * 64;
}
int64_t RunFma512(int64_t count) {
  WEFT_SPIN(WEFT_FMA512)
  return done * 32;
}
int64_t RunFma256(int64_t count) {
  WEFT_SPIN(WEFT_FMA256)
  return done * 16;
}

#else

int64_t RunVnni(int64_t) { return 0; }
int64_t RunMadd512(int64_t) { return 0; }
int64_t RunMadd256(int64_t) { return 0; }
int64_t RunBf16(int64_t) { return 0; }
int64_t RunFma512(int64_t) { return 0; }
int64_t RunFma256(int64_t) { return 0; }

#endif

}  // namespace

int64_t SpinInt8(Isa isa, int64_t count) {
  if (Includes(isa, Isa::kAvx512Vnni)) return RunVnni(count);
  if (Includes(isa, Isa::kAvx512)) return RunMadd512(count);
  return Includes(isa, Isa::kAvx2) ? RunMadd256(count) : 0;
}

int64_t SpinBf16(Isa isa, int64_t count) {
  return Includes(isa, Isa::kAvx512Bf16) ? RunBf16(count) : 0;
}

int64_t SpinF32(Isa isa, int64_t count) {
  if (Includes(isa, Isa::kAvx512)) return RunFma512(count);
  return Includes(isa, Isa::kAvx2) ? RunFma256(count) : 0;
}

uint64_t ReadOnce(const uint8_t* data, int64_t bytes) {
  typedef uint64_t Vector __attribute__((vector_size(16)));
  Vector sum[4] = {};
  for (int64_t i = 0; i < bytes; i += 64) {
    // As the kernels do: memory's latency is covered by asking ahead.
    __builtin_prefetch(data + i + 4096);
    const Vector* p = reinterpret_cast<const Vector*>(data + i);
    for (int j = 0; j < 4; ++j) sum[j] ^= p[j];
  }
  const Vector all = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
  return all[0] ^ all[1];
}

}  // namespace weft
