#include "runtime/plan/index_inputs.h"

#include "absl/strings/str_cat.h"
#include "ops/op_table.h"

namespace weft {
namespace {

const OperandSchema* FindIndex(const OpSchema& op, size_t operand) {
  if (operand >= op.operands.size()) return nullptr;
  const OperandSchema& found = op.operands[operand];
  return found.role == OperandRole::kIndex ? &found : nullptr;
}

}  // namespace

absl::StatusOr<std::vector<IndexUse>> IndexUses(const Graph& graph) {
  std::vector<IndexUse> uses;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value& value = graph.value(node.inputs[i]);
      if (value.type.dtype != DType::kI32) continue;
      const OperandSchema* index = FindIndex(*node.op, i);
      if (index != nullptr && index->index == IndexKind::kChosen &&
          value.kind == ValueKind::kTemporary) {
        continue;
      }
      const int of = index != nullptr ? index->of : -1;
      if (index == nullptr || value.kind != ValueKind::kInput ||
          (index->index == IndexKind::kRowOf &&
           (of < 0 || of >= static_cast<int>(node.inputs.size())))) {
        return absl::InvalidArgumentError(absl::StrCat(
            "illegal plan: ", node.op->name, " (", node.name, "): operand ", i,
            " cannot be '", value.name, "': nothing would check its numbers"));
      }
      IndexUse use = {node.inputs[i], &node, index->index, Dim::Context()};
      if (index->index == IndexKind::kRowOf) {
        use.below = graph.value(node.inputs[of]).type.shape[0];
      }
      uses.push_back(use);
    }
  }
  return uses;
}

}  // namespace weft
