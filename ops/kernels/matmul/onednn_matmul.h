// The tables of matmul kernels that call oneDNN, and of the own kernel that
// shares weights with them.
//
//   F32 weights in panel16: an alternative to the own kernel, same bits
//   (order: dense_isa.h).
//   F16 and BF16 weights in bf16_layout.h times rows rounded to bfloat16, sums
//   in f32 (order: bf16_isa.h): oneDNN from 16 rows up, the own kernel below.
//
// Rows of a call that make no whole tile of oneDNN's, and everything should it
// fail, go to the own kernel. Thread-safe.
#pragma once

#include "absl/types/span.h"
#include "ops/kernels/matmul/quantized_matmul.h"

namespace weft {

absl::Span<const MatmulKernel> OneDnnF32MatmulKernels();

// Those that call oneDNN, then the own one; x as bf16_isa.h says.
absl::Span<const MatmulKernel> OneDnnBf16MatmulKernels();
absl::Span<const MatmulKernel> Bf16MatmulKernels();

// A row of x as the BF16 kernels multiply it: rounded to nearest even, filled
// with zeros to Bf16PaddedDepth. Their thread scratch has room for a row of
// floats.
void RoundRowToBf16(const float* x, int64_t depth, uint16_t* out);

}  // namespace weft
