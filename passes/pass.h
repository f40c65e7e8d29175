// A pass: a named function from graph to better graph, with no state.
//
// After every pass the graph is verified (pipeline.h), so a pass may leave dead
// nodes but no illegal ones. Each pass stands in a file of its own that opens
// with a picture of before and after; pass_list.h lists them.
#pragma once

#include "absl/status/status.h"
#include "graph/graph.h"
#include "ops/kernels/kernel_options.h"
#include "passes/buffer_planner.h"

namespace weft {

// Of which part of a model the graph is, where several ranks run it together.
struct ShardOptions {
  int64_t rank = 0;
  int64_t ranks = 1;
};

struct PassOptions {
  KernelOptions kernels;
  PlanStrategy planner = PlanStrategy::kSearch;
  ShardOptions shard;
};

using PassFunction = absl::Status (*)(Graph& graph, const PassOptions& options);

}  // namespace weft
