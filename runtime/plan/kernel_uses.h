// Which kernel each kind of node runs on, why not one that stands before it in
// the table, and what the nodes cost: what `weft inspect --kernels` shows.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "ops/op.h"
#include "runtime/plan/plan.h"

namespace weft {

// Nodes of one op with operands of the same types, on one kernel.
struct KernelUse {
  std::string op;
  // Its name is its data sheet: op, weight type, tile, instruction set.
  std::string kernel;
  std::string weight;  // type, shape and layout; empty without one
  std::string input;   // type and shape of the first operand that is no weight
  std::string output;  // of the first result
  std::string summation;  // order of its sums; empty where it makes none
  std::string example;    // the name of the first such node
  int nodes = 0;
  Cost cost;  // of all of them together
  // Kernels of the op that stand before this one, and why each was not taken.
  std::vector<std::pair<std::string, std::string>> refused;
};

// In order of first appearance. Reasons are asked for again, so a plan from a
// file has them too. `bounds` is the step that is costed (NodeCost).
std::vector<KernelUse> KernelUses(const Graph& graph,
                                  const CompileOptions& options,
                                  const Bounds& bounds);

// Of all nodes together.
Cost StepCost(const Graph& graph, const Bounds& bounds);

}  // namespace weft
