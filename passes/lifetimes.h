// From a scheduled graph to the records that the buffer planner takes.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "passes/buffer_plan.h"

namespace weft {

// Record i belongs to `values[i]`, or to the scratch memory of `nodes[i]`.
struct Lifetimes {
  std::vector<Lifetime> records;
  std::vector<ValueId> values;  // kNone for scratch
  std::vector<NodeId> nodes;    // kNone for values
};

// One record for each temporary that has bytes of its own in the arena (no
// views, no state versions, no graph outputs that the caller's memory holds),
// and one for each kernel's scratch. A node's step is its place in the order. A
// result shares an operand's memory where the op allows it and nothing reads
// the operand later.
Lifetimes LifetimesOf(const Graph& graph);

// The value whose memory a view looks into, and how many bytes from its start.
struct ViewOf {
  ValueId root;
  int64_t byte_offset;
};
ViewOf RootOf(const Graph& graph, ValueId value);

// Whether the value lies in the arena (as itself or as a view).
bool InArena(const Graph& graph, ValueId value);

}  // namespace weft
