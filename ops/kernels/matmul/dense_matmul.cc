#include "ops/kernels/matmul/dense_matmul.h"

#include "ops/dequantize.h"
#include "ops/kernels/matmul/dense_isa.h"

namespace weft {

#if defined(__x86_64__) || defined(__aarch64__)

namespace {

int64_t NoScratch(int64_t) { return 0; }
int64_t RowsScratch(int64_t depth) { return DenseRowsScratchBytes(depth); }

template <DType kType, const DenseKernels* kKernels>
void RunWidened(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
                uint8_t* thread_scratch) {
  kKernels->rows_widened(args, panel_begin, panel_end, thread_scratch,
                         DequantizerOf(kType), RowBytes(kType, args.depth));
}

template <MatmulFunction DenseKernels::*kMember, const DenseKernels* kKernels>
void RunDense(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
              uint8_t* thread_scratch) {
  (kKernels->*kMember)(args, panel_begin, panel_end, thread_scratch);
}

template <DType kType, const DenseKernels* kKernels>
constexpr MatmulKernel Widened(const char* name, Isa isa) {
  return {
      name,       kType, "rows", isa, 1, kAnyRows, RunWidened<kType, kKernels>,
      RowsScratch};
}

template <MatmulFunction DenseKernels::*kMember, const DenseKernels* kKernels>
constexpr MatmulKernel Panel(const char* name, DType type, Isa isa) {
  return {
      name,     type, "panel16", isa, 1, kAnyRows, RunDense<kMember, kKernels>,
      NoScratch};
}

template <MatmulFunction DenseKernels::*kMember, const DenseKernels* kKernels>
constexpr MatmulKernel Rows(const char* name, DType type, Isa isa) {
  return {
      name,       type, "rows", isa, 1, kAnyRows, RunDense<kMember, kKernels>,
      RowsScratch};
}

using D = DenseKernels;

// Tiles: rows of x times rows of w. Few rows take 64 rows of w at once.
#if defined(__x86_64__)

constexpr const DenseKernels* k512 = &kDenseKernelsAvx512;
constexpr const DenseKernels* k256 = &kDenseKernelsAvx2;

constexpr MatmulKernel kDense[] = {
    Panel<&D::panel_f32, k512>("matmul_f32_12x32_avx512", DType::kF32,
                               Isa::kAvx512),
    Panel<&D::panel_f32, k256>("matmul_f32_6x16_avx2", DType::kF32, Isa::kAvx2),
    Panel<&D::panel_f16, k512>("matmul_f16_12x32_avx512", DType::kF16,
                               Isa::kAvx512),
    Panel<&D::panel_f16, k256>("matmul_f16_6x16_avx2", DType::kF16, Isa::kAvx2),
    Panel<&D::panel_bf16, k512>("matmul_bf16_12x32_avx512", DType::kBF16,
                                Isa::kAvx512),
    Panel<&D::panel_bf16, k256>("matmul_bf16_6x16_avx2", DType::kBF16,
                                Isa::kAvx2),
    Rows<&D::rows_f32, k512>("matmul_f32_rows_avx512", DType::kF32,
                             Isa::kAvx512),
    Rows<&D::rows_f32, k256>("matmul_f32_rows_avx2", DType::kF32, Isa::kAvx2),
    Rows<&D::rows_f16, k512>("matmul_f16_rows_avx512", DType::kF16,
                             Isa::kAvx512),
    Rows<&D::rows_f16, k256>("matmul_f16_rows_avx2", DType::kF16, Isa::kAvx2),
    Rows<&D::rows_bf16, k512>("matmul_bf16_rows_avx512", DType::kBF16,
                              Isa::kAvx512),
    Rows<&D::rows_bf16, k256>("matmul_bf16_rows_avx2", DType::kBF16,
                              Isa::kAvx2),
};

#define WEFT_WIDENED(type, name)                                              \
  Widened<DType::type, k512>("matmul_" name "_widened_avx512", Isa::kAvx512), \
      Widened<DType::type, k256>("matmul_" name "_widened_avx2", Isa::kAvx2)

#else

constexpr const DenseKernels* k128 = &kDenseKernelsNeon;

constexpr MatmulKernel kDense[] = {
    Panel<&D::panel_f32, k128>("matmul_f32_6x16_neon", DType::kF32, Isa::kNeon),
    Panel<&D::panel_f16, k128>("matmul_f16_6x16_neon", DType::kF16, Isa::kNeon),
    Panel<&D::panel_bf16, k128>("matmul_bf16_6x16_neon", DType::kBF16,
                                Isa::kNeon),
    Rows<&D::rows_f32, k128>("matmul_f32_rows_neon", DType::kF32, Isa::kNeon),
    Rows<&D::rows_f16, k128>("matmul_f16_rows_neon", DType::kF16, Isa::kNeon),
    Rows<&D::rows_bf16, k128>("matmul_bf16_rows_neon", DType::kBF16,
                              Isa::kNeon),
};

#define WEFT_WIDENED(type, name) \
  Widened<DType::type, k128>("matmul_" name "_widened_neon", Isa::kNeon)

#endif

constexpr MatmulKernel kWidened[] = {
    WEFT_WIDENED(kQ4_0, "q4_0"),     WEFT_WIDENED(kQ4_1, "q4_1"),
    WEFT_WIDENED(kQ5_0, "q5_0"),     WEFT_WIDENED(kQ5_1, "q5_1"),
    WEFT_WIDENED(kQ8_0, "q8_0"),     WEFT_WIDENED(kQ2_K, "q2_k"),
    WEFT_WIDENED(kQ3_K, "q3_k"),     WEFT_WIDENED(kQ4_K, "q4_k"),
    WEFT_WIDENED(kQ5_K, "q5_k"),     WEFT_WIDENED(kQ6_K, "q6_k"),
    WEFT_WIDENED(kIQ4_NL, "iq4_nl"), WEFT_WIDENED(kIQ4_XS, "iq4_xs"),
};

#undef WEFT_WIDENED

}  // namespace

absl::Span<const MatmulKernel> DenseMatmulKernels() { return kDense; }
absl::Span<const MatmulKernel> WidenedMatmulKernels() { return kWidened; }

#else

absl::Span<const MatmulKernel> DenseMatmulKernels() { return {}; }
absl::Span<const MatmulKernel> WidenedMatmulKernels() { return {}; }

#endif

}  // namespace weft
