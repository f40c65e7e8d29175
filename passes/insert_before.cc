#include "passes/insert_before.h"

#include <utility>

#include "ops/op_table.h"

namespace weft {

ValueId InsertBefore(Graph& graph, NodeId before, Node node) {
  absl::StatusOr<std::vector<ValueType>> types = OpOf(node).infer(graph, node);
  if (!types.ok()) types = {{graph.value(node.inputs[0]).type}};
  const NodeId id = graph.AddNode(std::move(node.op), std::move(node.inputs),
                                  *std::move(types), std::move(node.attributes),
                                  std::move(node.name), before);
  return graph.node(id).outputs[0];
}

}  // namespace weft
