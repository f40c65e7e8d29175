// Attention, fused and as its primitives, as rows of the kernel table.
#pragma once

#include "ops/kernels/kernel_table.h"

namespace weft {

void AddAttentionKernels(KernelRows* rows);

}  // namespace weft
