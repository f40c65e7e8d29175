// The recurrent kernels (recurrent.h) as rows of the kernel table.
#pragma once

#include "ops/kernels/kernel_table.h"

namespace weft {

void AddRecurrentKernels(KernelRows* rows);

}  // namespace weft
