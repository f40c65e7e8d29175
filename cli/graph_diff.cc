#include "cli/graph_diff.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/line_diff.h"
#include "graph/text_format.h"

namespace weft {
namespace {

// Op, name, and which of those that have both.
using NodeKey = std::tuple<std::string, std::string, int>;

std::map<NodeKey, NodeId> NodesByKey(const Graph& graph) {
  std::map<NodeKey, NodeId> nodes;
  std::map<std::pair<std::string, std::string>, int> seen;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    nodes[{node.op->name, node.name, seen[{node.op->name, node.name}]++}] = id;
  }
  return nodes;
}

// Numbers of the values of `after`, by the rules of the header.
std::vector<int> CommonNumbers(const Graph& before,
                               const std::vector<int>& before_numbers,
                               const Graph& after) {
  std::vector<int> numbers(after.value_count(), -1);
  std::vector<bool> taken(before.value_count(), false);
  const auto match = [&](ValueId a, ValueId b) {
    if (after.IsWeight(a) || before.IsWeight(b) || numbers[a] >= 0 ||
        taken[b]) {
      return;
    }
    numbers[a] = before_numbers[b];
    taken[b] = true;
  };
  for (ValueId id = 0; id < after.value_count(); ++id) {
    const Value& value = after.value(id);
    if (value.kind != ValueKind::kInput && value.kind != ValueKind::kState) {
      continue;
    }
    const ValueId same = before.FindValue(value.name);
    if (same != kNone) match(id, same);
  }
  const std::map<NodeKey, NodeId> before_nodes = NodesByKey(before);
  std::vector<std::pair<const Node*, const Node*>> pairs;
  for (const auto& [key, id] : NodesByKey(after)) {
    const auto it = before_nodes.find(key);
    if (it == before_nodes.end()) continue;
    const Node& a = after.node(id);
    const Node& b = before.node(it->second);
    pairs.push_back({&a, &b});
    for (size_t i = 0; i < std::min(a.outputs.size(), b.outputs.size()); ++i) {
      match(a.outputs[i], b.outputs[i]);
    }
  }
  for (const auto& [a, b] : pairs) {
    if (a->inputs.size() != b->inputs.size()) continue;
    for (size_t i = 0; i < a->inputs.size(); ++i) {
      match(a->inputs[i], b->inputs[i]);
    }
  }
  int next =
      1 + *std::max_element(before_numbers.begin(), before_numbers.end());
  const std::vector<int> own = NumberValues(after);
  std::vector<ValueId> fresh;
  for (ValueId id = 0; id < after.value_count(); ++id) {
    if (own[id] >= 0 && numbers[id] < 0) fresh.push_back(id);
  }
  std::sort(fresh.begin(), fresh.end(),
            [&](ValueId x, ValueId y) { return own[x] < own[y]; });
  for (ValueId id : fresh) numbers[id] = next++;
  return numbers;
}

}  // namespace

std::string DiffGraphs(const Graph& before, const Graph& after,
                       absl::string_view before_label,
                       absl::string_view after_label, const NodeFilter& show) {
  const std::vector<int> before_numbers = NumberValues(before);
  const std::vector<int> after_numbers =
      CommonNumbers(before, before_numbers, after);
  const std::string a = Dump(before, {show, &before_numbers});
  const std::string b = Dump(after, {show, &after_numbers});
  return UnifiedDiff(absl::StrSplit(a, '\n', absl::SkipEmpty()),
                     absl::StrSplit(b, '\n', absl::SkipEmpty()), before_label,
                     after_label);
}

}  // namespace weft
