// One pass over the KV pages instead of a matrix of scores.
//
//   %4 = attention_scores(%q, %k, %positions, %sequence)
//   %5 = softmax(%4)                                          f32[T,H,S]
//   %6 = attention_values(%5, %v, %positions, %sequence)
//     ->
//   %6 = attention(%q, %k, %v, %positions, %sequence)
//
// The sums are the same but taken page by page, so logits move by rounding.
#include "passes/pass.h"

namespace weft {

absl::Status FuseAttention(Graph& graph, const PassOptions&) {
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    Node& values = graph.node(id);
    if (values.op != "attention_values") continue;
    const NodeId softmax = graph.ProducerOf(values.inputs[0], "softmax");
    if (softmax == kNone || graph.OnlyUser(values.inputs[0]) != id) continue;
    const ValueId score_value = graph.node(softmax).inputs[0];
    const NodeId scores = graph.ProducerOf(score_value, "attention_scores");
    if (scores == kNone || graph.OnlyUser(score_value) != softmax) continue;
    const Node& s = graph.node(scores);
    const ValueType& keys = graph.value(s.inputs[1]).type;
    const ValueType& state = graph.value(values.inputs[1]).type;
    if (s.inputs[2] != values.inputs[2] || s.inputs[3] != values.inputs[3] ||
        keys.dtype != state.dtype || keys.shape[1] != state.shape[1]) {
      continue;
    }
    values.op = "attention";
    values.inputs = {s.inputs[0], s.inputs[1], values.inputs[1], s.inputs[2],
                     s.inputs[3]};
    values.attributes = s.attributes;
  }
  graph.EraseDead();
  return absl::OkStatus();
}

}  // namespace weft
