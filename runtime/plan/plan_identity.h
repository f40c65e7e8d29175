// What a plan's results depend on, so that what was computed by it may be kept.
#pragma once

#include <string>

#include "runtime/plan/plan.h"

namespace weft {

// Equal for two plans only if every step gives the same bits: made of the
// graph with its kernels, all bytes of the weights, and this program's own
// bytes, since kernels change with it. Reads all weights, which must have been
// made: some 0.1 s for a gigabyte.
std::string PlanIdentity(const Plan& plan);

}  // namespace weft
