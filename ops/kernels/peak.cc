// In assembly, because a compiler may see through loops without a result, and
// because it takes the instructions whatever the flags of this file. Only
// registers 0 to 11 are written (all are inputs too, so they are zeroed first:
// denormal numbers would be slow).

#include "ops/kernels/peak.h"

namespace weft {
namespace {

#define WEFT_TWELVE(OP) \
  OP(0) OP(1) OP(2) OP(3) OP(4) OP(5) OP(6) OP(7) OP(8) OP(9) OP(10) OP(11)

#if defined(__x86_64__)

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
#define WEFT_VNNI256(I) "%{vex%} vpdpbusd %%ymm12,%%ymm12,%%ymm" #I "\n"
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
int64_t RunVnni256(int64_t count) {
  WEFT_SPIN(WEFT_VNNI256)
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

// Four products of 16 x 64 by 64 x 16 bytes on tiles of their own. The tile
// registers are configured with 8 tiles of 16 rows of 64 bytes, zeros.
int64_t RunTiles(int64_t count) {
  struct alignas(64) {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } config = {};
  config.palette = 1;
  for (int i = 0; i < 8; ++i) {
    config.row_bytes[i] = 64;
    config.rows[i] = 16;
  }
  int64_t rounds = (count + 63) / 64;
  const int64_t done = rounds * 4;
  if (rounds > 0) {
    __asm__ volatile(
        "ldtilecfg %1\n"
        "1:\n"
        "tdpbssd %%tmm6,%%tmm4,%%tmm0\n"
        "tdpbssd %%tmm7,%%tmm4,%%tmm1\n"
        "tdpbssd %%tmm6,%%tmm5,%%tmm2\n"
        "tdpbssd %%tmm7,%%tmm5,%%tmm3\n"
        "dec %0\n"
        "jnz 1b\n"
        "tilerelease\n"
        : "+r"(rounds)
        : "m"(config)
        : "cc");
  }
  return done * 2 * 16 * 16 * 64;
}

#elif defined(__aarch64__)

#define WEFT_ZERO(I) "movi v" #I ".16b,#0\n"

// The assembler, too, wants to be told the instruction set.
#define WEFT_SPIN(OP)                                                       \
  int64_t rounds = (count + 11) / 12;                                       \
  const int64_t done = rounds * 12;                                         \
  if (rounds > 0) {                                                         \
    __asm__ volatile(                                                     \
        ".arch armv8.2-a+dotprod+i8mm\n"                                  \
        WEFT_TWELVE(WEFT_ZERO) WEFT_ZERO(12)                              \
        "1:\n" WEFT_TWELVE(OP)                                            \
        "subs %0,%0,#1\n"                                                 \
        "b.ne 1b\n"                                                       \
        : "+r"(rounds)                                                    \
        :                                                                 \
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9",     \
          "v10", "v11", "v12", "cc"); \
  }

#define WEFT_MMLA(I) "usmmla v" #I ".4s,v12.16b,v12.16b\n"
#define WEFT_DOT(I) "sdot v" #I ".4s,v12.16b,v12.16b\n"
#define WEFT_MLAL(I) "smlal v" #I ".8h,v12.8b,v12.8b\n"
#define WEFT_FMLA(I) "fmla v" #I ".4s,v12.4s,v12.4s\n"

int64_t RunMmla(int64_t count) {
  WEFT_SPIN(WEFT_MMLA)
  return done * 64;
}
int64_t RunDot(int64_t count) {
  WEFT_SPIN(WEFT_DOT)
  return done * 32;
}
int64_t RunMlal(int64_t count) {
  WEFT_SPIN(WEFT_MLAL)
  return done * 16;
}
int64_t RunFmla(int64_t count) {
  WEFT_SPIN(WEFT_FMLA)
  return done * 8;
}

#endif

}  // namespace

#if defined(__x86_64__)

int64_t SpinInt8(Isa isa, int64_t count) {
  if (Includes(isa, Isa::kAvx512Vnni)) return RunVnni(count);
  if (Includes(isa, Isa::kAvx512)) return RunMadd512(count);
  if (Includes(isa, Isa::kAvx2Vnni)) return RunVnni256(count);
  return Includes(isa, Isa::kAvx2) ? RunMadd256(count) : 0;
}

int64_t SpinTileInt8(Isa isa, int64_t count) {
  return Includes(isa, Isa::kAvx512Amx) ? RunTiles(count) : 0;
}

int64_t SpinBf16(Isa isa, int64_t count) {
  return Includes(isa, Isa::kAvx512Bf16) ? RunBf16(count) : 0;
}

int64_t SpinF32(Isa isa, int64_t count) {
  if (Includes(isa, Isa::kAvx512)) return RunFma512(count);
  return Includes(isa, Isa::kAvx2) ? RunFma256(count) : 0;
}

#elif defined(__aarch64__)

int64_t SpinInt8(Isa isa, int64_t count) {
  if (Includes(isa, Isa::kNeonI8mm)) return RunMmla(count);
  if (Includes(isa, Isa::kNeonDot)) return RunDot(count);
  return Includes(isa, Isa::kNeon) ? RunMlal(count) : 0;
}

int64_t SpinTileInt8(Isa, int64_t) { return 0; }
int64_t SpinBf16(Isa, int64_t) { return 0; }

int64_t SpinF32(Isa isa, int64_t count) {
  return Includes(isa, Isa::kNeon) ? RunFmla(count) : 0;
}

#else

int64_t SpinInt8(Isa, int64_t) { return 0; }
int64_t SpinTileInt8(Isa, int64_t) { return 0; }
int64_t SpinBf16(Isa, int64_t) { return 0; }
int64_t SpinF32(Isa, int64_t) { return 0; }

#endif

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
