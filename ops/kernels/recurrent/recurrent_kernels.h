// The recurrent kernels (recurrent.h) as entries of the kernel table.
#pragma once

#include "ops/kernels/kernel_table.h"

namespace weft {

void AddRecurrentKernels(KernelEntries* rows);

}  // namespace weft
