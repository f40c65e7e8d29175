// The activation behind a short convolution becomes part of it.
//
//   %3, %4 = short_conv(%0, %1, $taps, ...)
//   %5 = silu(%4)
//   ->
//   %3, %4 = short_conv(%0, %1, $taps, ...) activation="silu"
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
    ShortConvAttributes attributes;
    attributes.activation = ConvActivation::kSilu;
    graph.node(conv).attributes = attributes;
    graph.ReplaceUses(graph.node(silu).outputs[0], graph.node(conv).outputs[1]);
  });
  return absl::OkStatus();
}

}  // namespace weft
