// Between a plan in memory and the header of a plan file; the bytes of weights
// are no business of this.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/plan_file.h"

namespace weft {

// All but weights and reference. The same plan gives the same message.
PlanProto HeaderOf(const Plan& plan);

// The message is untrusted: names, enums, sizes and graphs are checked,
// soundness of the plan is not (verify_plan.h). Weights have no bytes yet.
absl::StatusOr<PlanFile> ReadHeader(PlanProto header);

// For messages: what `reference` says.
void WriteReference(const ModelReference& reference, PlanProto* header);

}  // namespace weft
