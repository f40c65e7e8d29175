// The tables of matmul kernels that multiply F16 and BF16 weights in bfloat16
// (bf16_layout.h) by rows rounded to bfloat16, sums in f32 (order: bf16_isa.h):
// by oneDNN from 16 rows up, by the own kernel below.
//
// Rows of a call that make no whole tile of oneDNN's, and everything should it
// fail, go to the own kernel. Thread-safe.
#pragma once

#include "absl/types/span.h"
#include "ops/kernels/matmul/matmul_kernel.h"

namespace weft {

// Those that call oneDNN, then the own one; x as bf16_isa.h says.
absl::Span<const MatmulKernel> OneDnnBf16MatmulKernels();
absl::Span<const MatmulKernel> Bf16MatmulKernels();

// A row of x as the BF16 kernels multiply it: rounded to nearest even, filled
// with zeros to Bf16PaddedDepth. Their thread scratch has room for a row of
// floats.
void RoundRowToBf16(const float* x, int64_t depth, uint16_t* out);

}  // namespace weft
