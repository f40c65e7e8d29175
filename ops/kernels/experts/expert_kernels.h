// The entries of the kernel table for top_k, expert_add, expert_mul,
// expert_matmul and fused_expert_matmul.
#pragma once

#include "ops/kernels/kernel_table.h"

namespace weft {

void AddExpertKernels(KernelEntries* rows);

// The parts, by file.
void AddTopKKernels(KernelEntries* rows);
void AddExpertRowsKernels(KernelEntries* rows);
void AddExpertMatmulKernels(KernelEntries* rows);

}  // namespace weft
