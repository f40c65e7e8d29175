// One pass over the KV pages instead of a matrix of scores.
//
//   %4 = attention_scores(%q, %k, %positions, %sequence)
//   %5 = softmax(%4)                                          f32[T,H,S]
//   %6 = attention_values(%5, %v, %positions, %sequence)
//     ->
//   %6 = attention(%q, %k, %v, %positions, %sequence)
//
// Sinks of the softmax become an operand of attention, behind the rows' own
// positions.
//
// The sums are the same but taken page by page, so logits move by rounding.
// Keys are now read where the values are: not when they were written anew in
// between. They may be one state (value_dim), which is then read for both.
#include "ops/op_table.h"
#include "ops/ops.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace weft {
namespace {

// The kernel walks keys and values together.
bool StoredAlike(const ValueType& keys, const ValueType& values) {
  return keys.dtype == values.dtype && keys.shape[1] == values.shape[1];
}

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
  ValueId q, keys, values, positions, sequence;
  NodeId scores, softmax;
  const Pattern scored =
      Op(kAttentionScoresOp,
         {Any(&q), Any(&keys), Any(&positions), Any(&sequence)}, &scores);
  const Pattern mixed =
      Op(kAttentionValuesOp, {Once(Op(kSoftmaxOp, {Once(scored)}, &softmax)),
                              Any(&values), Same(&positions), Same(&sequence)});
  ForEachMatch(graph, mixed, [&](NodeId id) {
    if (!StoredAlike(graph.value(keys).type, graph.value(values).type) ||
        !IsNewestAt(graph, keys, id)) {
      return;
    }
    Node& attention = graph.node(id);
    auto attributes = graph.node(scores).attributes.As<AttentionAttributes>();
    attributes.value_dim =
        attention.attributes.As<ValuesAttributes>().value_dim;
    attention.Become(kAttentionOp, attributes);
    attention.inputs = {q, keys, values, positions, sequence};
    const std::vector<ValueId>& scored_by = graph.node(scores).inputs;
    const std::vector<ValueId>& operands = graph.node(softmax).inputs;
    // Rows stand where they look up to unless something else is said.
    const bool says_own = scored_by.size() > 4;
    if (says_own || operands.size() > 1) {
      attention.inputs.push_back(says_own ? scored_by[4] : positions);
    }
    if (operands.size() > 1) attention.inputs.push_back(operands[1]);
  });
  return absl::OkStatus();
}

}  // namespace weft
