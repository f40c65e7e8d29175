// The rules of a legal graph. Passes and loaders are checked with it after
// every step, and graphs from files before anything else is done with them.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "graph/graph.h"

namespace weft {

// What verification must know about ops, given from above (ops/op_table):
// graph/ itself knows no op.
class OpRules {
 public:
  virtual ~OpRules() = default;

  // Checks a node's operands and attributes and computes the types of its
  // results. Called only with operand ids in range.
  virtual absl::StatusOr<std::vector<ValueType>> Infer(
      const Graph& graph, const Node& node) const = 0;
};

// The first broken rule, with the node's line of text:
//  - ids in range, every temporary made by exactly one node in the order,
//  before
//    its uses; no node twice in the order, none erased in it
//  - dims from 1 to 2^32, elements of a value below 2^40, rows whole blocks
//  - known ops, operand types and attributes as the op's rule says, result
//  types
//    as it computes
//  - dimensions of weights are numbers
//  - names of inputs, weights and states not empty and unique
//  - weights: as many bytes as the type needs, when there are bytes and no
//  layout
//  - states: one linear chain of writes, reads of the newest version only, and
//  the
//    last version is a graph output
//  - at least one output
absl::Status Verify(const Graph& graph, const OpRules& rules);

}  // namespace weft
