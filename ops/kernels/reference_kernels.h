// The reference function of every op as a kernel: slow, serial, exact.
#pragma once

#include "ops/kernels/kernel_table.h"

namespace weft {

void AddReferenceKernels(KernelRows* rows);

}  // namespace weft
