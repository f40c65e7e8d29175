// Rounds the rows that meet quantised weights to int8, in blocks of 32.
//
//   %3 = matmul(%2, $w)                 %3 = quantize_rows(%2)    q8r[T,256]
//      $w: q4_0[256,256]        ->      %4 = matmul(%3, $w)
//
// One per product; common-subexpression makes one of those with the same
// operand.
#include "ops/fused_matmul.h"
#include "ops/ops.h"
#include "passes/insert_before.h"
#include "passes/pass.h"

namespace weft {

absl::Status QuantizeActivations(Graph& graph, const PassOptions&) {
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (!node.Is(kMatmulOp) && !node.Is(kExpertMatmulOp) &&
        !node.Is(kHeadMatmulOp)) {
      continue;
    }
    const ValueId x = graph.node(id).inputs[0];
    const ValueType& type = graph.value(x).type;
    const ValueType& weight = graph.value(graph.node(id).inputs[1]).type;
    if (type.dtype != DType::kF32 || !Info(weight.dtype).quantized) continue;
    const ValueId rounded = InsertBefore(
        graph, id, Node(kQuantizeRowsOp, {x}, {}, graph.node(id).name));
    graph.node(id).inputs[0] = rounded;
  }
  return absl::OkStatus();
}

}  // namespace weft
