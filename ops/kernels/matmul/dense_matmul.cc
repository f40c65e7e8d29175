// One line per kernel; those through f32 for every quantised type.

#include "ops/kernels/matmul/dense_matmul.h"

#include "ops/dequantize.h"
#include "ops/kernels/matmul/dense_isa.h"

namespace weft {

#if defined(__x86_64__) || defined(__aarch64__)

namespace {

int64_t RowsScratch(int64_t depth) { return DenseRowsScratchBytes(depth); }

template <DType kType, const DenseKernels* kKernels>
void RunWidened(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
                uint8_t* thread_scratch) {
  kKernels->rows_widened(args, panel_begin, panel_end, thread_scratch,
                         DequantizerOf(kType), RowBytes(kType, args.depth));
}

#define WEFT_KERNEL(WEIGHT, TILE, ISA, LAYOUT, ...) \
  {.weight = DType::WEIGHT,                         \
   .tile = TILE,                                    \
   .isa = Isa::ISA,                                 \
   .layout = LAYOUT,                                \
   __VA_ARGS__},

}  // namespace

// Few rows are those whose time is that of reading the weights.
// clang-format off
absl::Span<const MatmulKernel> DenseMatmulKernels() {
  static const MatmulKernel kTable[] = {
#if defined(__x86_64__)
  WEFT_KERNEL(kF32, "6x64", kAvx512, "panel16", .max_rows = 8, .run = kDenseKernelsAvx512.few_f32)
  WEFT_KERNEL(kF32, "12x32", kAvx512, "panel16", .run = kDenseKernelsAvx512.many_f32)
  WEFT_KERNEL(kF32, "1x64", kAvx2, "panel16", .max_rows = 1, .run = kDenseKernelsAvx2.few_f32)
  WEFT_KERNEL(kF32, "6x16", kAvx2, "panel16", .run = kDenseKernelsAvx2.many_f32)
  WEFT_KERNEL(kF16, "6x64", kAvx512, "panel16", .max_rows = 8, .run = kDenseKernelsAvx512.few_f16)
  WEFT_KERNEL(kF16, "12x32", kAvx512, "panel16", .run = kDenseKernelsAvx512.many_f16)
  WEFT_KERNEL(kF16, "1x64", kAvx2, "panel16", .max_rows = 1, .run = kDenseKernelsAvx2.few_f16)
  WEFT_KERNEL(kF16, "6x16", kAvx2, "panel16", .run = kDenseKernelsAvx2.many_f16)
  WEFT_KERNEL(kBF16, "6x64", kAvx512, "panel16", .max_rows = 8, .run = kDenseKernelsAvx512.few_bf16)
  WEFT_KERNEL(kBF16, "12x32", kAvx512, "panel16", .run = kDenseKernelsAvx512.many_bf16)
  WEFT_KERNEL(kBF16, "1x64", kAvx2, "panel16", .max_rows = 1, .run = kDenseKernelsAvx2.few_bf16)
  WEFT_KERNEL(kBF16, "6x16", kAvx2, "panel16", .run = kDenseKernelsAvx2.many_bf16)
  WEFT_KERNEL(kF32, "rows", kAvx512, "rows", .run = kDenseKernelsAvx512.rows_f32, .thread_scratch = RowsScratch)
  WEFT_KERNEL(kF32, "rows", kAvx2, "rows", .run = kDenseKernelsAvx2.rows_f32, .thread_scratch = RowsScratch)
  WEFT_KERNEL(kF16, "rows", kAvx512, "rows", .run = kDenseKernelsAvx512.rows_f16, .thread_scratch = RowsScratch)
  WEFT_KERNEL(kF16, "rows", kAvx2, "rows", .run = kDenseKernelsAvx2.rows_f16, .thread_scratch = RowsScratch)
  WEFT_KERNEL(kBF16, "rows", kAvx512, "rows", .run = kDenseKernelsAvx512.rows_bf16, .thread_scratch = RowsScratch)
  WEFT_KERNEL(kBF16, "rows", kAvx2, "rows", .run = kDenseKernelsAvx2.rows_bf16, .thread_scratch = RowsScratch)
#else
  WEFT_KERNEL(kF32, "1x64", kNeon, "panel16", .max_rows = 1, .run = kDenseKernelsNeon.few_f32)
  WEFT_KERNEL(kF32, "6x16", kNeon, "panel16", .run = kDenseKernelsNeon.many_f32)
  WEFT_KERNEL(kF16, "1x64", kNeon, "panel16", .max_rows = 1, .run = kDenseKernelsNeon.few_f16)
  WEFT_KERNEL(kF16, "6x16", kNeon, "panel16", .run = kDenseKernelsNeon.many_f16)
  WEFT_KERNEL(kBF16, "1x64", kNeon, "panel16", .max_rows = 1, .run = kDenseKernelsNeon.few_bf16)
  WEFT_KERNEL(kBF16, "6x16", kNeon, "panel16", .run = kDenseKernelsNeon.many_bf16)
  WEFT_KERNEL(kF32, "rows", kNeon, "rows", .run = kDenseKernelsNeon.rows_f32, .thread_scratch = RowsScratch)
  WEFT_KERNEL(kF16, "rows", kNeon, "rows", .run = kDenseKernelsNeon.rows_f16, .thread_scratch = RowsScratch)
  WEFT_KERNEL(kBF16, "rows", kNeon, "rows", .run = kDenseKernelsNeon.rows_bf16, .thread_scratch = RowsScratch)
#endif
  };
  return kTable;
}

#define WEFT_WIDENED_ON(TYPE, ISA, KERNELS) \
  WEFT_KERNEL(k##TYPE, "widened", ISA, "rows", .run = RunWidened<DType::k##TYPE, &KERNELS>, .thread_scratch = RowsScratch)
#if defined(__x86_64__)
#define WEFT_WIDENED(TYPE, ...)                        \
  WEFT_WIDENED_ON(TYPE, kAvx512, kDenseKernelsAvx512)  \
  WEFT_WIDENED_ON(TYPE, kAvx2, kDenseKernelsAvx2)
#else
#define WEFT_WIDENED(TYPE, ...) \
  WEFT_WIDENED_ON(TYPE, kNeon, kDenseKernelsNeon)
#endif
// clang-format on

absl::Span<const MatmulKernel> WidenedMatmulKernels() {
  static const MatmulKernel kTable[] = {
      WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_WIDENED)};
  return kTable;
}

#undef WEFT_WIDENED
#undef WEFT_WIDENED_ON
#undef WEFT_KERNEL

#else

absl::Span<const MatmulKernel> DenseMatmulKernels() { return {}; }
absl::Span<const MatmulKernel> WidenedMatmulKernels() { return {}; }

#endif

}  // namespace weft
