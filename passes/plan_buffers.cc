// plan-buffers: gives every intermediate a place in one arena.
//
//   %4 = matmul(%3, $w)  f32[T,256]
//     ->
//   %4 = matmul(%3, $w)  f32[T,256]@65536
//
// The planner itself (buffer_planner.h) sees only lifetimes; this is the way in
// and out. Graph outputs lie in the caller's memory and get no place.
#include "base/status.h"
#include "ops/op_table.h"
#include "passes/lifetimes.h"
#include "passes/pass.h"

namespace weft {

absl::Status PlanBuffers(Graph& graph, const PassOptions& options) {
  const Lifetimes lifetimes = LifetimesOf(graph);
  WEFT_ASSIGN_OR_RETURN(BufferPlan plan,
                        PlanArena(lifetimes.records, options.planner));
  for (size_t i = 0; i < lifetimes.records.size(); ++i) {
    if (lifetimes.values[i] != kNone) {
      graph.value(lifetimes.values[i]).offset = plan.offsets[i];
    } else {
      graph.node(lifetimes.nodes[i]).scratch_offset = plan.offsets[i];
    }
  }
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!OpOf(node).view || !InArena(graph, node.outputs[0])) continue;
    const ViewOf view = RootOf(graph, node.outputs[0]);
    graph.value(node.outputs[0]).offset =
        graph.value(view.root).offset + view.byte_offset;
  }
  graph.arena = {plan.arena_bytes, plan.lower_bound, plan.sum_of_buffers};
  return absl::OkStatus();
}

}  // namespace weft
