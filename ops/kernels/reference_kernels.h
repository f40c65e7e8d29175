// The reference function of every op as a kernel: slow, serial, exact.
#pragma once

#include <memory>

#include "ops/kernels/kernel_table.h"
#include "ops/op.h"

namespace weft {

// Its name is that of the op with _ref. Requires that the op is no view.
std::unique_ptr<KernelEntry> ReferenceRowFor(const OpDef& op);

}  // namespace weft
