// A gate as the epilogue of the product that makes its operands: what
// fuse-silu-gate and fuse-gelu-gate have in common.
#pragma once

#include "graph/graph.h"
#include "ops/kernels/matmul/matmul.h"
#include "passes/match.h"

namespace weft {

// The activation of a gate: the node that is made, and the op it comes from.
struct Gate {
  const OpSchema* op;  // kSiluGateOp
  GateActivation activation;
  bool (*is_activation)(const Node& node);
};

void FuseGate(const Gate& gate, Graph* graph);

}  // namespace weft
