// A new node in the middle of a graph.
#pragma once

#include "graph/graph.h"

namespace weft {

// Adds the node before `before`, with results of the types that its op's rule
// finds, and returns the first result. Requires an op of the table. A node that
// the rule refuses is a fault of the pass: it gets the type of its first
// operand, so that the verifier, which runs after every pass, says what is
// wrong.
ValueId InsertBefore(Graph& graph, NodeId before, Node node);

}  // namespace weft
