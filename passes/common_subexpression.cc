// Computes equal things once.
//
//   %2 = quantize_rows(%1)              %2 = quantize_rows(%1)
//   %3 = quantize_rows(%1)              %4 = matmul(%2, $a)
//   %4 = matmul(%2, $a)         ->      %5 = matmul(%2, $b)
//   %5 = matmul(%3, $b)
//
// Nodes are equal when op, operands and attributes are. Writes of state never
// are, and graph outputs stay apart: each has its own memory, the caller's, and
// readers of other values may take slices, which an output has not.
#include <algorithm>
#include <map>
#include <tuple>

#include "ops/op_table.h"
#include "passes/pass.h"

namespace weft {

absl::Status CommonSubexpression(Graph& graph, const PassOptions&) {
  std::map<std::tuple<const OpSchema*, std::vector<ValueId>, Attributes>,
           NodeId>
      seen;
  // In order of execution, so the operands of a later node are already merged.
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (OpOf(node).writes_state ||
        std::any_of(node.outputs.begin(), node.outputs.end(),
                    [&](ValueId output) { return graph.IsOutput(output); })) {
      continue;
    }
    const auto [it, fresh] = seen.emplace(
        std::make_tuple(node.op, node.inputs, node.attributes), id);
    if (fresh) continue;
    const Node& first = graph.node(it->second);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      graph.ReplaceUses(node.outputs[i], first.outputs[i]);
    }
    graph.Erase(id);
  }
  return absl::OkStatus();
}

}  // namespace weft
