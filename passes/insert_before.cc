#include "passes/insert_before.h"

#include <utility>

#include "ops/op_table.h"

namespace weft {

ValueId InsertBefore(Graph& graph, NodeId before, Node node) {
  absl::StatusOr<std::vector<ValueType>> types = ResultTypes(graph, node);
  if (!types.ok()) types = {{graph.value(node.inputs[0]).type}};
  const NodeId id = graph.AddNode(std::move(node), *std::move(types), before);
  return graph.node(id).outputs[0];
}

}  // namespace weft
