#include "graph/listing.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace weft {

const char* KindName(ValueKind kind) {
  switch (kind) {
    case ValueKind::kInput:
      return "input";
    case ValueKind::kWeight:
      return "weight";
    case ValueKind::kState:
      return "state";
    case ValueKind::kTemporary:
      break;
  }
  return "temporary";
}

std::vector<int> NumberValues(const Graph& graph) {
  std::vector<int> numbers(graph.value_count(), -1);
  int next = 0;
  for (ValueKind kind : {ValueKind::kInput, ValueKind::kState}) {
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      if (graph.value(id).kind == kind) numbers[id] = next++;
    }
  }
  for (NodeId n : graph.order()) {
    for (ValueId id : graph.node(n).outputs) numbers[id] = next++;
  }
  return numbers;
}

std::string ValueLabel(const Graph& graph, const std::vector<int>& numbers,
                       ValueId id) {
  return graph.IsWeight(id) ? absl::StrCat("$", graph.value(id).name)
                            : absl::StrCat("%", numbers[id]);
}

int BlockOf(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "blk.")) return -1;
  int block;
  const absl::string_view digits = name.substr(0, name.find('.'));
  return absl::SimpleAtoi(digits, &block) && block >= 0 ? block : -1;
}

std::vector<bool> ShownValues(const Graph& graph, const NodeFilter& show) {
  if (!show) return std::vector<bool>(graph.value_count(), true);
  std::vector<bool> shown(graph.value_count(), false);
  for (NodeId n : graph.order()) {
    const Node& node = graph.node(n);
    if (!show(node)) continue;
    for (ValueId id : node.inputs) shown[id] = true;
    for (ValueId id : node.outputs) shown[id] = true;
  }
  return shown;
}

}  // namespace weft
