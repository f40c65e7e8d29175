// What the numbers of a graph's integer inputs must be below, so that no kernel
// looks where it must not.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "ops/op.h"

namespace weft {

// One operand that takes its numbers from an input.
struct IndexUse {
  ValueId input;
  const Node* node;  // in the graph
  IndexKind kind;
  Dim below;  // kRowOf: number of rows; kPosition: S; else meaningless
};

// Every use of every integer input, in order of the graph. Requires a verified
// graph, which must outlive the result. Errors: an integer operand that is no
// input or that its op does not declare (OpSchema::operands), so that nobody
// could check its numbers.
absl::StatusOr<std::vector<IndexUse>> IndexUses(const Graph& graph);

}  // namespace weft
