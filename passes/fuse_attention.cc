// One pass over the KV pages instead of a matrix of scores.
//
//   %4 = attention_scores(%q, %k, %positions, %sequence)
//   %5 = softmax(%4)                                          f32[T,H,S]
//   %6 = attention_values(%5, %v, %positions, %sequence)
//     ->
//   %6 = attention(%q, %k, %v, %positions, %sequence)
//
// The sums are the same but taken page by page, so logits move by rounding.
// Keys are now read where the values are: not when they were written anew in
// between.
#include "ops/op_table.h"
#include "passes/pass.h"

namespace weft {
namespace {

// Whether a state's version is still the newest where `node` stands.
bool IsNewestAt(const Graph& graph, ValueId version, NodeId node) {
  for (NodeId id : graph.order()) {
    if (id == node) return true;
    const Node& write = graph.node(id);
    if (OpOf(write).writes_state && write.inputs[0] == version) return false;
  }
  return true;
}

}  // namespace

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
        keys.dtype != state.dtype || keys.shape[1] != state.shape[1] ||
        !IsNewestAt(graph, s.inputs[1], id)) {
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
