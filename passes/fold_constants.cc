// Computes once, now, what depends on weights alone.
//
//   %3 = concat_rows($bq, $bk)  f32[96]   ->   $qkv.bias = weight f32[96]
//
// Only what moves bytes: arithmetic by reference functions would round
// differently from the kernels that compute it in a step. And only small
// results (biases, scales); matrices are the business of pack-weights, which
// makes them when they are needed, so that looking at a plan costs no memory.
#include <algorithm>
#include <memory>

#include "ops/op_table.h"
#include "ops/ops.h"
#include "ops/storage.h"
#include "passes/pass.h"

namespace weft {
namespace {

constexpr int64_t kLargest = 1 << 16;

bool CanFold(const Graph& graph, const Node& node) {
  if (!node.Is(kConcatRowsOp) && !node.Is(kInterleaveRowsOp)) return false;
  const ValueType& result = graph.value(node.outputs[0]).type;
  return result.layout.empty() &&
         std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) {
                       return graph.IsWeight(input) &&
                              !graph.value(input).data.bytes.empty();
                     }) &&
         StorageBytes(result, graph.bounds) <= kLargest;
}

}  // namespace

absl::Status FoldConstants(Graph& graph, const PassOptions&) {
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    if (!CanFold(graph, graph.node(id))) continue;
    const Node node = graph.node(id);
    const ValueType type = graph.value(node.outputs[0]).type;
    auto bytes = std::make_shared<std::vector<uint8_t>>(
        StorageBytes(type, graph.bounds));
    const auto operand = [&](ValueId value, const uint8_t* data) {
      return MatrixOperand(graph.value(value).type, graph.bounds,
                           const_cast<uint8_t*>(data));
    };
    std::vector<Operand> inputs;
    for (ValueId input : node.inputs) {
      inputs.push_back(operand(input, graph.value(input).data.bytes.data()));
    }
    const Operand output = operand(node.outputs[0], bytes->data());
    OpOf(node).reference({graph, node, inputs.data(), &output, graph.bounds});
    WeightData data;
    data.bytes = *bytes;
    data.owner = bytes;
    const ValueId folded = graph.AddWeight(
        graph.FreeName(node.name.empty() ? "folded" : node.name), type,
        std::move(data));
    graph.ReplaceUses(node.outputs[0], folded);
    graph.Erase(id);
  }
  return absl::OkStatus();
}

}  // namespace weft
