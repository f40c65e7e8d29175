// The rows of the kernel table for top_k, expert_add, expert_mul, expert_matmul
// and fused_expert_matmul.
#pragma once

#include "ops/kernels/kernel_table.h"

namespace weft {

void AddExpertKernels(KernelRows* rows);

// The parts, by file.
void AddTopKKernels(KernelRows* rows);
void AddExpertRowsKernels(KernelRows* rows);
void AddExpertMatmulKernels(KernelRows* rows);

}  // namespace weft
