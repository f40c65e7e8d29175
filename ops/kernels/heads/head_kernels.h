// The entries of the kernel table for head_matmul and concat_heads.
#pragma once

#include "ops/kernels/kernel_table.h"

namespace weft {

void AddHeadKernels(KernelEntries* rows);

}  // namespace weft
