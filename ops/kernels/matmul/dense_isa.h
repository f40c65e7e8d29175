// Dense matmuls as files of one instruction set define them: f32 activations
// times F32, F16 or BF16 weights, all arithmetic in f32.
//
// Order of summation, for every element whatever the kernel, layout, number of
// rows or tile ("blocks of columns in order"):
//   for each block of DenseSumBlock(depth) columns, in order:
//     chain = 0; for each k of the block: chain = fma(x[k], w[k], chain)
//     sum = chain of the first block, then sum = sum + chain
// then + bias and the epilogue (matmul.h). F16 and BF16 widen exactly.
#pragma once

#include "ops/kernels/matmul/matmul.h"

namespace weft {

enum class DenseType : uint8_t { kF32, kF16, kBF16 };

static inline int DenseBytes(DenseType type) {
  return type == DenseType::kF32 ? 4 : 2;
}

static inline int64_t DenseSumBlock(int64_t depth) {
  return depth <= 1024 ? 512 : 1024;
}

// One row of any stored type to n floats.
using WidenRow = void (*)(const void* src, float* dst, int64_t n);

struct DenseKernels {
  // Layout "panel16": [panel][depth][16], see pack_dense.h. All epilogues. Few
  // rows take four panels at a time, to have enough chains in flight; many take
  // two or one, which stay in the second-level cache while the rows pass.
  MatmulFunction few_f32, few_f16, few_bf16;
  MatmulFunction many_f32, many_f16, many_bf16;
  // Layout "rows": rows as in the file, without gaps; any number of rows.
  MatmulFunction rows_f32, rows_f16, rows_bf16;
  // The same for any type, through `widen`.
  void (*rows_widened)(const MatmulArgs& args, int64_t panel_begin,
                       int64_t panel_end, uint8_t* thread_scratch,
                       WidenRow widen, int64_t weight_row_bytes);
};

// Thread scratch of the rows kernels: four panels and 16 rows, as floats. The
// panel kernels need none.
static inline int64_t DenseRowsScratchBytes(int64_t depth) {
  return (4 + 1) * depth * kPanelRows * 4 + 64;
}

extern const DenseKernels kDenseKernelsAvx2;
extern const DenseKernels kDenseKernelsAvx512;
extern const DenseKernels kDenseKernelsNeon;

}  // namespace weft
