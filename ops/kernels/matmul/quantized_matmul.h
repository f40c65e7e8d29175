// The table of integer matmul kernels: quantised rows (quantized_rows.h) times
// a quantised weight.
//
// All rows of one weight type give bit-identical results (matmul.h), whatever
// the layout, instruction set, number of rows or split over threads.
// Thread-safe.
#pragma once

#include "absl/types/span.h"
#include "ops/kernels/matmul/matmul_kernel.h"

namespace weft {

// Best first within a weight type and layout: the first row whose isa the cap
// includes and whose row limits fit is the one to take. Empty where no
// instruction set has kernels.
absl::Span<const MatmulKernel> QuantizedMatmulKernels();

}  // namespace weft
