#include "tests/passes/elementwise_ops.h"

#include <algorithm>
#include <string>
#include <utility>

namespace weft {
namespace {

bool TakesOnlyRows(const OpDef& op) {
  return op.operands.size() <= 2 &&
         std::all_of(op.operands.begin(), op.operands.end(),
                     [](const OperandSchema& operand) {
                       return operand.role == OperandRole::kRows &&
                              !operand.optional && !operand.repeated;
                     });
}

bool Gives(const Graph& graph, const Node& node, const ValueType& type) {
  const absl::StatusOr<std::vector<ValueType>> types = ResultTypes(graph, node);
  return types.ok() && types->size() == 1 && types->front() == type;
}

AttributeValue RandomValue(const AttributeSchema& attribute,
                           std::mt19937* random) {
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>((*random)() % n);
  };
  switch (attribute.type) {
    case AttributeType::kInteger: {
      const int64_t least = std::max<int64_t>(attribute.least, -4);
      return least +
             below(1 + std::min<int64_t>(attribute.most, least + 8) - least);
    }
    case AttributeType::kFlag:
      return below(2);
    case AttributeType::kNumber: {
      const double numbers[] = {0.5, 1.75, 3};
      return std::max(attribute.lowest, 0.0) + numbers[below(3)];
    }
    case AttributeType::kChoice:
      return std::string(attribute.names[below(attribute.name_count)]);
    case AttributeType::kText:
      break;
  }
  return std::string("text");
}

}  // namespace

std::vector<ElementwiseOp> ElementwiseOps() {
  Graph graph;
  graph.bounds = {16, 16, 16};
  const ValueType matrix = {DType::kF32, Shape{Dim::Tokens(), Dim::Number(32)},
                            ""};
  const ValueId x = graph.AddInput("x", matrix);
  const ValueId y = graph.AddInput("y", matrix);
  const ValueId vector =
      graph.AddWeight("w", {DType::kF32, Shape{Dim::Number(32)}, ""}, {});
  std::mt19937 random(1);
  std::vector<ElementwiseOp> found;
  for (const OpDef* op : AllOps()) {
    if (!op->primitive || op->view || !TakesOnlyRows(*op)) continue;
    std::vector<ValueId> operands = {x, y};
    operands.resize(op->operands.size());
    Node node(*op, operands, RandomAttributes(*op, &random));
    if (!Gives(graph, node, matrix)) continue;
    bool takes_vector = false;
    if (operands.size() == 2) {
      node.inputs[1] = vector;
      takes_vector = Gives(graph, node, matrix);
    }
    found.push_back({op, takes_vector});
  }
  return found;
}

Attributes RandomAttributes(const OpSchema& op, std::mt19937* random) {
  Attributes attributes(op.attributes);
  for (const AttributeSchema& attribute : op.attributes) {
    if (!attribute.required && (*random)() % 2 == 0) continue;
    attributes.Set(op.name, attribute.name, RandomValue(attribute, random))
        .IgnoreError();  // the verifier says it again
  }
  return attributes;
}

}  // namespace weft
