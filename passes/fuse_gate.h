// A gate as the epilogue of the products that make its operands: what
// fuse-silu-gate, fuse-gelu-gate and fuse-clamped-gate have in common.
//
// Products are matmul, with a bias of its own or none, or expert_matmul
// likewise; gate and up may also be the two halves of one matmul.
#pragma once

#include "graph/graph.h"
#include "ops/fused_matmul.h"
#include "passes/match.h"

namespace weft {

struct Gate {
  // The two joined; `node` is set to the op at its root.
  Pattern (*joined)(Pattern gate, Pattern up, NodeId* node);
  // What that node computes.
  GateParts (*parts)(const Node& node);
  // The op that is made where no product can have the gate. Null: it stays.
  const OpSchema* rest;
};

// mul(activation(gate), up), where `is` says which activation.
Pattern MulOfActivation(bool (*is)(const Node& node), Pattern gate, Pattern up,
                        NodeId* node);

void FuseGate(const Gate& gate, Graph* graph);

}  // namespace weft
