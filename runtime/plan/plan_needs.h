// Whether this program has what a plan from a file was compiled with: ops and
// kernels that other programs registered, and the same passes.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "runtime/plan/plan.h"

namespace weft {

// An error names ops and kernels of the plan's graphs that are not in the
// tables (ops/op_table.h, ops/kernels/kernel_table.h). Passes are not needed to
// run what they made.
absl::Status CheckPlanNeeds(const Plan& plan, const std::string& path);

// For a plan that is compiled again: an error names the passes that ran for it
// (Plan::passes) and are not in the pipeline, or that would run now and did not
// then, or says that their order is another.
absl::Status CheckSamePasses(const Plan& plan, const std::string& path);

}  // namespace weft
