// The entry of the kernel table for all_gather.
#pragma once

#include "ops/kernels/kernel_table.h"

namespace weft {

void AddCollectiveKernels(KernelEntries* entries);

}  // namespace weft
