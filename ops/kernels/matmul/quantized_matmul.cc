// One macro line per kernel family, expanded for every weight type.

#include "ops/kernels/matmul/quantized_matmul.h"

#include "ops/kernels/matmul/panel16.h"
#include "ops/kernels/matmul/quantized_isa.h"

namespace weft {
namespace {

#if defined(__x86_64__) || defined(__aarch64__)

int64_t NoScratch(int64_t) { return 0; }

// Four unpacked panels: kGateQuantize finishes them together.
template <class Block>
int64_t PrefillScratch(int64_t depth) {
  return 2 * UnpackedPairBytes<Block>(depth);
}

// Lower-case type names for kernel names.
#define WEFT_NAME_Q4_0 "q4_0"
#define WEFT_NAME_Q4_1 "q4_1"
#define WEFT_NAME_Q5_0 "q5_0"
#define WEFT_NAME_Q5_1 "q5_1"
#define WEFT_NAME_Q8_0 "q8_0"
#define WEFT_NAME_Q2_K "q2_k"
#define WEFT_NAME_Q3_K "q3_k"
#define WEFT_NAME_Q4_K "q4_k"
#define WEFT_NAME_Q5_K "q5_k"
#define WEFT_NAME_Q6_K "q6_k"
#define WEFT_NAME_IQ4_NL "iq4_nl"
#define WEFT_NAME_IQ4_XS "iq4_xs"

#define WEFT_KERNEL(TYPE, TILE, ISA, LAYOUT, ISA_ID, MAX_ROWS, FUNCTION, \
                    SCRATCH)                                             \
  {"matmul_" WEFT_NAME_##TYPE "_" TILE "_" ISA,                          \
   DType::k##TYPE,                                                       \
   LAYOUT,                                                               \
   ISA_ID,                                                               \
   1,                                                                    \
   MAX_ROWS,                                                             \
   FUNCTION<Block##TYPE>,                                                \
   SCRATCH},

#define WEFT_FEW_ON(T, ISA, ID)                                          \
  WEFT_KERNEL(T, "6x16", ISA, "panel16", Isa::k##ID, kPackedRowsOfBytes, \
              MatmulPanel16##ID, NoScratch)
#define WEFT_ANY_ON(T, ISA, ID)                                \
  WEFT_KERNEL(T, "6x32", ISA, "panel16", Isa::k##ID, kAnyRows, \
              MatmulPanel16##ID, PrefillScratch<Block##T>)

#if defined(__x86_64__)

#define WEFT_FEW_AVX512VNNI(T)                                      \
  WEFT_KERNEL(T, "6x16", "avx512vnni", "panel16", Isa::kAvx512Vnni, \
              kPackedRowsVnni512, MatmulPanel16Avx512Vnni, NoScratch)
#define WEFT_AVX512VNNI(T)                                                    \
  WEFT_KERNEL(T, "6x32", "avx512vnni", "panel16", Isa::kAvx512Vnni, kAnyRows, \
              MatmulPanel16Avx512Vnni, PrefillScratch<Block##T>)
#define WEFT_FEW_AVX512(T) WEFT_FEW_ON(T, "avx512", Avx512)
#define WEFT_AVX512(T) WEFT_ANY_ON(T, "avx512", Avx512)
#define WEFT_FEW_AVX2VNNI(T) WEFT_FEW_ON(T, "avx2vnni", Avx2Vnni)
#define WEFT_AVX2VNNI(T) WEFT_ANY_ON(T, "avx2vnni", Avx2Vnni)
#define WEFT_FEW_AVX2(T) WEFT_FEW_ON(T, "avx2", Avx2)
#define WEFT_AVX2(T) WEFT_ANY_ON(T, "avx2", Avx2)
#define WEFT_ROWS_AVX2(T)                                                      \
  WEFT_KERNEL(T, "rows", "avx2", "rows", Isa::kAvx2, kAnyRows, MatmulRowsAvx2, \
              NoScratch)

constexpr MatmulKernel kTable[] = {
    WEFT_FOR_EACH_QUANTIZED_TYPE(
        WEFT_FEW_AVX512VNNI) WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_AVX512VNNI)
        WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_FEW_AVX512)
            WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_AVX512)
                WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_FEW_AVX2VNNI)
                    WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_AVX2VNNI)
                        WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_FEW_AVX2)
                            WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_AVX2)
                                WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_ROWS_AVX2)};

#else

#define WEFT_FEW_NEONI8MM(T) WEFT_FEW_ON(T, "neoni8mm", NeonI8mm)
#define WEFT_NEONI8MM(T) WEFT_ANY_ON(T, "neoni8mm", NeonI8mm)
#define WEFT_FEW_NEONDOT(T) WEFT_FEW_ON(T, "neondot", NeonDot)
#define WEFT_NEONDOT(T) WEFT_ANY_ON(T, "neondot", NeonDot)
#define WEFT_FEW_NEON(T) WEFT_FEW_ON(T, "neon", Neon)
#define WEFT_NEON(T) WEFT_ANY_ON(T, "neon", Neon)
#define WEFT_ROWS_NEON(T)                                                      \
  WEFT_KERNEL(T, "rows", "neon", "rows", Isa::kNeon, kAnyRows, MatmulRowsNeon, \
              NoScratch)

constexpr MatmulKernel kTable[] = {
    WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_FEW_NEONI8MM)
        WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_NEONI8MM)
            WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_FEW_NEONDOT)
                WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_NEONDOT)
                    WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_FEW_NEON)
                        WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_NEON)
                            WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_ROWS_NEON)};

#endif

#endif

}  // namespace

absl::Span<const MatmulKernel> QuantizedMatmulKernels() {
#if defined(__x86_64__) || defined(__aarch64__)
  return kTable;
#else
  return {};
#endif
}

}  // namespace weft
