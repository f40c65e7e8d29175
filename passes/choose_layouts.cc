// Gives every weight the layout that the best kernel for one token reads.
//
//   %4 = matmul(%3, $w)         ->      %p = pack_weight($w) layout="panel16"
//                                       %4 = matmul(%3, %p)
//
// Decoding one token at a time is bound by reading weights, so it decides; for
// more tokens only kernels that read the same layout are taken. A table that is
// also the embedding is packed once: embed reads any layout, but for one that
// rounds (F16 as bfloat16), since rows of an embedding are never rounded: then
// it keeps the weight as it was, as other readers do.
#include <algorithm>
#include <map>

#include "ops/experts.h"
#include "ops/kernels/kernel_table.h"
#include "ops/ops.h"
#include "ops/weight_layout.h"
#include "passes/pass.h"

namespace weft {
namespace {

std::string BestLayout(const Graph& graph, const Node& node,
                       const KernelOptions& options) {
  const ValueType& weight = graph.value(node.inputs[1]).type;
  if (!weight.layout.empty()) return "";  // it has one already
  for (const auto& row : AllKernels()) {
    if (!row->Computes(node)) continue;
    const WeightLayout* layout = FindWeightLayout(row->weight_layout());
    if (layout == nullptr ||
        !layout->supports(weight.dtype, weight.shape[0].value,
                          weight.shape[1].value)) {
      continue;
    }
    const NodeView view = {graph, node, options, layout->name};
    if (WhyNot(*row, view).empty()) return layout->name;
  }
  return "";
}

// A weight, or what passes join of weights: packed once, not in every step.
bool IsConstant(const Graph& graph, ValueId value) {
  return graph.IsWeight(value) ||
         graph.ProducerOf(value, kConcatRowsOp) != kNone ||
         graph.ProducerOf(value, kSliceRowsOp) != kNone ||
         graph.ProducerOf(value, kTransposeRowsOp) != kNone ||
         graph.ProducerOf(value, kInterleaveRowsOp) != kNone;
}

// Whether the node is a product that reads the weight through its layout.
bool Multiplies(const Node& node, ValueId weight) {
  return IsProduct(node) && node.inputs[1] == weight &&
         std::count(node.inputs.begin(), node.inputs.end(), weight) == 1;
}

// Whether the node may read the weight through this layout.
bool ReadsLayout(const Graph& graph, const Node& node, ValueId weight,
                 const std::string& layout) {
  if (Multiplies(node, weight)) return true;
  return node.Is(kEmbedOp) && node.inputs[1] == weight &&
         FindWeightLayout(layout)->keeps_exactly(
             graph.value(weight).type.dtype);
}

}  // namespace

absl::Status ChooseLayouts(Graph& graph, const PassOptions& options) {
  // The choice is made for one token.
  const Bounds bounds = graph.bounds;
  graph.bounds.tokens = graph.bounds.rows = 1;
  std::map<ValueId, std::string> layouts;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!IsProduct(node) || !Multiplies(node, node.inputs[1])) continue;
    const ValueId weight = node.inputs[1];
    if (layouts.count(weight) > 0 || !IsConstant(graph, weight)) continue;
    const std::string layout = BestLayout(graph, node, options.kernels);
    if (!layout.empty()) layouts[weight] = layout;
  }
  graph.bounds = bounds;
  for (const auto& [weight, layout] : layouts) {
    std::vector<NodeId> users;
    for (NodeId user : graph.Users(weight)) {
      if (ReadsLayout(graph, graph.node(user), weight, layout)) {
        users.push_back(user);
      }
    }
    ValueType type = graph.value(weight).type;
    type.layout = layout;
    const Node* producer = graph.Producer(weight);
    const NodeId pack = graph.AddNode(
        Node(kPackWeightOp, {weight}, PackWeightAttributes{layout},
             producer != nullptr ? producer->name : graph.value(weight).name),
        {type}, users.front());
    for (NodeId user : users) {
      graph.node(user).inputs[1] = graph.node(pack).outputs[0];
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
