// The tables of dense matmul kernels: f32 rows times F32, F16 or BF16 weights,
// and f32 rows times quantised weights where activations are not to be
// quantised.
//
// All rows of a table give bit-identical results for one weight (order of
// summation: dense_isa.h), whatever the layout, instruction set, number of rows
// or split over threads. Thread-safe.
#pragma once

#include "absl/types/span.h"
#include "ops/kernels/matmul/matmul_kernel.h"

namespace weft {

// Best first within a weight type and layout ("panel16" of pack_dense.h, or
// "rows").
absl::Span<const MatmulKernel> DenseMatmulKernels();

// Weights of any stored type in the file's own layout ("rows"), widened to f32
// in thread scratch. Slow next to the integer kernels.
absl::Span<const MatmulKernel> WidenedMatmulKernels();

}  // namespace weft
