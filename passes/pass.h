// A pass: a named function from graph to better graph, with no state.
//
// After every pass the graph is verified (pipeline.h), so a pass may leave dead
// nodes but no illegal ones. Each pass stands in a file of its own that opens
// with a picture of before and after.
#pragma once

#include "absl/status/status.h"
#include "graph/graph.h"
#include "ops/kernels/kernel_table.h"
#include "passes/plan_buffers.h"

namespace weft {

struct PassOptions {
  KernelOptions kernels;
  PlanStrategy planner = PlanStrategy::kSearch;
};

using PassFunction = absl::Status (*)(Graph& graph, const PassOptions& options);

absl::Status DeadCode(Graph& graph, const PassOptions& options);
absl::Status FoldConstants(Graph& graph, const PassOptions& options);
absl::Status QuantizeActivations(Graph& graph, const PassOptions& options);
absl::Status CommonSubexpression(Graph& graph, const PassOptions& options);
absl::Status FuseAttention(Graph& graph, const PassOptions& options);
absl::Status FuseSiluGate(Graph& graph, const PassOptions& options);
absl::Status FuseGeluGate(Graph& graph, const PassOptions& options);
absl::Status FuseClampedGate(Graph& graph, const PassOptions& options);
absl::Status FuseQkv(Graph& graph, const PassOptions& options);
absl::Status FuseRmsNormMatmul(Graph& graph, const PassOptions& options);
absl::Status FuseLayerNormMatmul(Graph& graph, const PassOptions& options);
absl::Status FuseResidual(Graph& graph, const PassOptions& options);
absl::Status FuseRopeKvWrite(Graph& graph, const PassOptions& options);
absl::Status ChooseLayouts(Graph& graph, const PassOptions& options);
absl::Status PackWeights(Graph& graph, const PassOptions& options);
absl::Status ChooseKernels(Graph& graph, const PassOptions& options);
absl::Status Schedule(Graph& graph, const PassOptions& options);
absl::Status PlaceBuffers(Graph& graph, const PassOptions& options);

}  // namespace weft
