// Patterns: the expression that a fusion replaces, written down.
//
//   // silu(x gate^T) * (x up^T)
//   ValueId x, gate, up;
//   const Pattern gated = Op(kMatmulOp, {Any(&x), Weight(&gate)});
//   const Pattern other = Op(kMatmulOp, {Same(&x), Weight(&up)});
//   const Pattern whole =
//       EitherOrder(Op(kMulOp, {Once(Op(kSiluOp, {Once(gated)})),
//       Once(other)}));
//   ForEachMatch(graph, whole, [&](NodeId mul) { ... x, gate, up ... });
//
// A pattern is a tree that is read from a node towards its operands, from left
// to right. What it captures is written through pointers as it is met, so a
// capture stands to the left of its Same, and holds only after a match.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace weft {

// What a value must be. Made by the functions below.
struct Pattern {
  std::function<bool(const Value&)> value_is;  // null: any value
  std::function<bool(const Node&)> node_is;    // of its producer; null: any
  // The first operands of the producer; those behind them are free.
  std::vector<Pattern> operands;
  bool either_order = false;
  bool once = false;
  const ValueId* same = nullptr;
  ValueId* value = nullptr;
  NodeId* node = nullptr;
};

// --- Values.
Pattern Any(ValueId* value);
Pattern Weight(ValueId* value);  // a constant
Pattern Vector(ValueId* value);  // of rank 1, the same for every row
Pattern Rows(ValueId* value);    // of a higher rank
// The value that was captured there.
Pattern Same(const ValueId* captured);

// --- Results of nodes.
Pattern Op(const OpSchema& op, std::vector<Pattern> operands,
           NodeId* node = nullptr);
Pattern OpThat(std::function<bool(const Node&)> is,
               std::vector<Pattern> operands, NodeId* node = nullptr);

// --- Conditions.
// The node above reads the value, in one place; nothing else does, and it is no
// output of the graph: a fusion may do away with it.
Pattern Once(Pattern pattern);
// The two operands may have changed places. As written is tried first; the
// order that fits is kept, whatever stands further right in the pattern.
Pattern EitherOrder(Pattern pattern);

bool Match(const Graph& graph, NodeId node, const Pattern& pattern);

// Calls `rewrite` for every node that matches, in order of execution. Nodes
// that are dead, or die of it, are erased at once: they do not count as
// readers.
void ForEachMatch(Graph& graph, const Pattern& pattern,
                  const std::function<void(NodeId node)>& rewrite);

}  // namespace weft
