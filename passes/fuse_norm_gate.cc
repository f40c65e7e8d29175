// The gated norm of recurrent blocks as one node.
//
//   %4 = rms_norm(%3, $w)
//   %5 = silu_gate(%2, %4)       ->      %5 = rms_norm_gate(%3, $w, %2)
#include "ops/ops.h"
#include "passes/insert_before.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace weft {

absl::Status FuseNormGate(Graph& graph, const PassOptions&) {
  ValueId x, weight, gate;
  NodeId norm;
  const Pattern normed = Op(kRmsNormOp, {Any(&x), Weight(&weight)}, &norm);
  ForEachMatch(
      graph, Op(kSiluGateOp, {Rows(&gate), Once(normed)}), [&](NodeId node) {
        const Node gated(kRmsNormGateOp, {x, weight, gate},
                         graph.node(norm).attributes, graph.node(node).name);
        graph.ReplaceUses(graph.node(node).outputs[0],
                          InsertBefore(graph, node, gated));
      });
  return absl::OkStatus();
}

}  // namespace weft
