#include "passes/match.h"

#include <utility>

namespace weft {
namespace {

bool MatchValue(const Graph& graph, NodeId reader, ValueId id,
                const Pattern& pattern) {
  const Value& value = graph.value(id);
  if (pattern.same != nullptr && *pattern.same != id) return false;
  if (pattern.value_is && !pattern.value_is(value)) return false;
  if (pattern.once && graph.OnlyUser(id) != reader) return false;
  if (pattern.value != nullptr) *pattern.value = id;
  return !pattern.node_is ||
         (value.producer != kNone && Match(graph, value.producer, pattern));
}

bool MatchOperands(const Graph& graph, NodeId id, const Pattern& pattern,
                   bool swapped) {
  const std::vector<ValueId>& inputs = graph.node(id).inputs;
  const size_t n = pattern.operands.size();
  if (inputs.size() < n) return false;
  for (size_t i = 0; i < n; ++i) {
    const ValueId input = inputs[swapped ? n - 1 - i : i];
    if (!MatchValue(graph, id, input, pattern.operands[i])) return false;
  }
  return true;
}

Pattern ValueThat(bool (*is)(const Value&), ValueId* value) {
  Pattern pattern;
  pattern.value_is = is;
  pattern.value = value;
  return pattern;
}

bool IsWeight(const Value& v) { return v.kind == ValueKind::kWeight; }
bool IsVector(const Value& v) { return v.type.shape.rank() == 1; }
bool IsRows(const Value& v) { return v.type.shape.rank() > 1; }

}  // namespace

Pattern Any(ValueId* value) { return ValueThat(nullptr, value); }
Pattern Weight(ValueId* value) { return ValueThat(IsWeight, value); }
Pattern Vector(ValueId* value) { return ValueThat(IsVector, value); }
Pattern Rows(ValueId* value) { return ValueThat(IsRows, value); }

Pattern Same(const ValueId* captured) {
  Pattern pattern;
  pattern.same = captured;
  return pattern;
}

Pattern Op(const OpSchema& op, std::vector<Pattern> operands, NodeId* node) {
  return OpThat([&op](const Node& n) { return n.Is(op); }, std::move(operands),
                node);
}

Pattern OpThat(std::function<bool(const Node&)> is,
               std::vector<Pattern> operands, NodeId* node) {
  Pattern pattern;
  pattern.node_is = std::move(is);
  pattern.operands = std::move(operands);
  pattern.node = node;
  return pattern;
}

Pattern Once(Pattern pattern) {
  pattern.once = true;
  return pattern;
}

Pattern EitherOrder(Pattern pattern) {
  pattern.either_order = true;
  return pattern;
}

bool Match(const Graph& graph, NodeId id, const Pattern& pattern) {
  if (pattern.node_is && !pattern.node_is(graph.node(id))) return false;
  if (pattern.node != nullptr) *pattern.node = id;
  return MatchOperands(graph, id, pattern, false) ||
         (pattern.either_order && MatchOperands(graph, id, pattern, true));
}

void ForEachMatch(Graph& graph, const Pattern& pattern,
                  const std::function<void(NodeId node)>& rewrite) {
  graph.EraseDead();
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    if (graph.node(id).erased || !Match(graph, id, pattern)) continue;
    rewrite(id);
    graph.EraseDead();
  }
}

}  // namespace weft
