// Plans that are kept for the next start of the same model, with their weights
// as kernels read them: then a start is mapping a file.
//
// Idea: the file's name has a key of all that makes the plan what it is: the
// model file, the options, the program. So one that is there is either right or
// damaged, and either way nothing is lost with it: it can be made again.
// Whoever keeps plans chooses the folder, and removes those with other keys.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/api/model.h"
#include "runtime/machine/thread_pool.h"

namespace weft {

// 16 characters: a hash of the model file's size and time of modification, the
// options that are compiled in, and the program that runs. Errors: no such
// file.
absl::StatusOr<std::string> KeptPlanKey(const std::string& model_path,
                                        const ModelOptions& options);

// The plan in that file. Errors: there is none (kNotFound), or it cannot be
// used here.
absl::StatusOr<Plan> LoadKeptPlan(const std::string& path);

// Writes the plan and gives it back as it lies in the file. Errors: no space
// (some is left free), no permission; `plan` is as it was then.
absl::StatusOr<Plan> KeepPlan(const Plan& plan, const std::string& path,
                              ThreadPool& threads, const Progress& progress);

}  // namespace weft
