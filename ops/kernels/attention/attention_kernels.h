// Attention, fused and as its primitives, as entries of the kernel table.
#pragma once

#include "ops/kernels/kernel_table.h"

namespace weft {

void AddAttentionKernels(KernelEntries* rows);

}  // namespace weft
