// Graphs as a picture: the DOT language of Graphviz (`dot -Tsvg`).
//
// A box per node, with op, name, result types, kernel and cost; nodes of one
// block ("blk.3.") stand in a cluster. Weights are named inside the boxes that
// read them: as boxes of their own they would drown the rest. Edges carry the
// value's label. The same graph gives the same bytes.
#pragma once

#include <string>

#include "graph/graph.h"
#include "graph/listing.h"

namespace weft {

// With a filter: the nodes shown; what they read from others comes in as a
// dashed ellipse.
std::string ToDot(const Graph& graph, const NodeFilter& show = nullptr,
                  const CostOf& cost = nullptr);

}  // namespace weft
