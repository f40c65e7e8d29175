// The matmul kernels as entries of the kernel table: for `matmul` and
// `fused_matmul` nodes, quantised and dense weights, with RMSNorm before and
// epilogues after.
#pragma once

#include "ops/kernels/kernel_table.h"

namespace weft {

void AddMatmulKernels(KernelEntries* rows);

}  // namespace weft
