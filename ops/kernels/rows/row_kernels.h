// The row-wise kernels (rows.h) and embed as entries of the kernel table.
#pragma once

#include "ops/kernels/kernel_table.h"
#include "ops/kernels/rows/rows.h"

namespace weft {

// The family on this instruction set or the best below it; null when there is
// none.
const RowKernels* RowKernelsFor(Isa isa);

// The norm that this op is, for kernels that begin with it; null when there is
// none.
RowFunction<NormArgs> NormFunctionFor(absl::string_view op, Isa isa);

void AddRowKernels(KernelEntries* rows);

}  // namespace weft
