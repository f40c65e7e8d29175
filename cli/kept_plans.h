// Plans that commands keep beside models that were pulled, so that the next
// start takes no time: of a model one, for the options of its last start.
//
// Only of models in the store (runtime/hub/model_store.h): nobody else's
// folders are written to. `weft list` says what they take, `weft rm` removes
// them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/command.h"
#include "runtime/api/engine.h"

namespace weft {

// The path of the model's plan, which is made if it is not there; empty where
// there is none: the model is no pulled one, or there is no room. What goes
// wrong costs only time, so it is no error but a notice.
std::string KeptPlanOf(const std::string& model, const EngineOptions& options,
                       const CommonFlags& common);

// When a command failed: removes the plan that KeptPlanOf gave if `why` is that
// it was damaged: since it was opened, or in a part that is not looked at then.
void DropDamagedPlan(const absl::Status& why);

}  // namespace weft
