// What all written forms of a graph agree on: the numbers of values, and which
// part of a graph is shown.
#pragma once

#include <functional>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace weft {

// Which nodes to write; empty: all.
using NodeFilter = std::function<bool(const Node& node)>;

// "input", "weight", "state" or "temporary".
const char* KindName(ValueKind kind);

// What a node costs in one step: bytes moved, and operations, a multiply-add
// being two. For who knows the ops; empty: costs are not shown.
struct ListedCost {
  int64_t bytes = 0;
  int64_t operations = 0;
};
using CostOf = std::function<ListedCost(const Node& node)>;

// By value: its place in order of appearance (inputs, states, then results of
// nodes in order); -1 for weights, which go by their names, and for values that
// no node in the order makes. The same whatever part of the graph is shown.
std::vector<int> NumberValues(const Graph& graph);

// "%3", or "$name" for a weight.
std::string ValueLabel(const Graph& graph, const std::vector<int>& numbers,
                       ValueId id);

// A node's name, or its op where it has none.
inline std::string LabelOf(const Node& node) {
  return node.name.empty() ? node.op->name : node.name;
}

// 3 for "blk.3.attn_q", -1 for what stands in no block.
int BlockOf(absl::string_view name);

// By value: whether a node that is shown reads or makes it, or, where all are
// shown, true.
std::vector<bool> ShownValues(const Graph& graph, const NodeFilter& show);

}  // namespace weft
