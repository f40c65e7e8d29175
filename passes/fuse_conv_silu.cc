// The activation behind a short convolution becomes part of it.
//
//   %3, %4 = short_conv(%0, %1, $taps, ...)
//   %5 = silu(%4)
//   ->
//   %3, %4 = short_conv(%0, %1, $taps, ...) activation="silu"
#include <vector>

#include "ops/ops.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace weft {

absl::Status FuseConvSilu(Graph& graph, const PassOptions&) {
  NodeId conv;
  const Pattern convolved = OpThat(
      [](const Node& node) {
        return node.Is(kShortConvOp) &&
               node.attributes.As<ShortConvAttributes>().activation ==
                   ConvActivation::kNone;
      },
      {}, &conv);
  ForEachMatch(graph, Op(kSiluOp, {Once(convolved)}), [&](NodeId silu) {
    // A node of its own: what the convolution gives must not become another
    // value under the same number.
    const Node before = graph.node(conv);
    ShortConvAttributes attributes;
    attributes.activation = ConvActivation::kSilu;
    std::vector<ValueType> types;
    for (ValueId result : before.outputs) {
      types.push_back(graph.value(result).type);
    }
    const NodeId fused = graph.AddNode(
        Node(kShortConvOp, before.inputs, attributes, before.name), types,
        conv);
    graph.ReplaceUses(before.outputs[0], graph.node(fused).outputs[0]);
    graph.ReplaceUses(graph.node(silu).outputs[0],
                      graph.node(fused).outputs[1]);
  });
  return absl::OkStatus();
}

}  // namespace weft
