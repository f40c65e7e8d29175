// The table of integer matmul kernels: quantised rows (quantized_rows.h) times
// a quantised weight.
//
// All rows of one weight type give bit-identical results (matmul.h), whatever
// the layout, instruction set, number of rows or split over threads.
// Thread-safe.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "graph/dtype.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/matmul/matmul.h"

namespace weft {

struct MatmulKernel {
  // matmul_<weight type>_<tile or rows>_<isa>
  const char* name;
  DType weight;
  // "panel16" (panel16.h, made by pack.h), "rows" (as in the file) or the one
  // of bf16_layout.h.
  const char* layout;
  Isa isa;
  // The least and most rows of x that the kernel takes.
  int64_t min_rows;
  int64_t max_rows;
  MatmulFunction run;
  // Bytes of thread_scratch, 64-byte aligned, for this depth; may be 0.
  int64_t (*thread_scratch_bytes)(int64_t depth);
  // panel_begin is a multiple of this.
  int group_panels = 2;
};

constexpr int64_t kAnyRows = INT64_MAX;

// Best first within a weight type and layout: the first row whose isa the cap
// includes and whose row limits fit is the one to take. Empty where no
// instruction set has kernels.
absl::Span<const MatmulKernel> QuantizedMatmulKernels();

}  // namespace weft
