// From the graph that a loader wrote to a plan that runs.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "runtime/machine/thread_pool.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/verify_plan.h"
#include "runtime/plan/weight_jobs.h"

namespace weft {

// Called with the graph before the first pass (empty name) and after every
// pass; bucket 0 stands for the passes that run once.
using PassObserver = std::function<void(const std::string& pass, int64_t bucket,
                                        const Graph& graph)>;

// Runs the pipeline. Weights of new layouts are described, not yet made:
// looking at a plan costs no memory. `graph` is verified first. Errors: a pass
// name that does not exist, a graph that a pass left illegal (a bug, told with
// the pass's name).
absl::StatusOr<Plan> Compile(Graph graph, const CompileOptions& options,
                             const PassObserver& observer = nullptr,
                             const std::string& stop_after = "");

// Gives a plan the graphs of its model's next-token block, compiled with the
// same options. What both read in different layouts gets a name of its own.
void AddNextTokenBlock(Plan block, Plan* plan);

// Makes the weights that are only described, into one block of memory that the
// plan's graphs keep alive, and reads those that stay in the model file, or
// with `copy` copies them, too: then plan.files is empty, and what the weights
// of plan.streamed lie in, where they stay, is plan.streamed_file. Idempotent.
// Errors: no memory; the file was written to meanwhile.
absl::Status MakeWeights(Plan& plan, ThreadPool& threads,
                         bool huge_pages = false,
                         const Progress& progress = nullptr, bool copy = false);

}  // namespace weft
