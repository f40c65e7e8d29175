// The parts of a fused_matmul node, by name.
//
//   fused_matmul(x, weight, [norm], [bias], [residual])
//
// computes, in this order and with the float operations of the nodes it
// replaces:
//   x' = rms_norm(x, norm) when there is an `eps` attribute
//   x' = quantize_rows(x') when quantize=1 (only with eps; else x comes
//   quantised) y = x' weight^T, + bias when bias=1 epilogue "residual": y +
//   residual
//            "silu_gate":          silu(gate) * up, where the weight's rows are
//            16 of
//                                  gate and 16 of up in turn (interleave_rows)
//            "silu_gate_quantize": the same, then quantize_rows
//            absent:               y
#pragma once

#include "graph/graph.h"
#include "ops/kernels/matmul/matmul.h"

namespace weft {

// Also describes a plain `matmul`.
struct MatmulParts {
  ValueId x = kNone;
  ValueId weight = kNone;
  // Positions among the operands; -1 when absent.
  int norm = -1;
  int bias = -1;
  int residual = -1;
  double eps = 0;
  bool quantize = false;
  MatmulEpilogue epilogue = MatmulEpilogue::kStore;
};

// Requires a matmul or fused_matmul of a verified graph.
MatmulParts PartsOf(const Node& node);

// The node's operands and attributes for these parts.
void SetParts(const MatmulParts& parts, ValueId norm, ValueId bias,
              ValueId residual, Node* node);

bool IsMatmul(const Node& node);

}  // namespace weft
