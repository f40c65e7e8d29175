// The parts of a fused_matmul node, by name.
//
//   fused_matmul(x, weight, [norm], [norm_bias], [bias], [residual])
//
// computes, in this order and with the float operations of the nodes that it
// replaces:
//   x' = rms_norm(x, norm)   where there is an `eps` attribute;
//        layer_norm(x, norm, [norm_bias])  with norm="layer" too, and the bias
//                            with norm_bias=1
//   x' = quantize_rows(x')   with quantize=1 (only with eps; else x comes
//                            quantised)
//   y  = x' weight^T         + bias with bias=1
//   epilogue "residual":     y + residual
//            "silu_gate":    silu(gate) * up, where the weight's rows are 16 of
//                            gate and 16 of up in turn (interleave_rows)
//            "gelu_gate":    the same with gelu, approximated by tanh
//            "clamped_gate": clamped_gate(gate, up) with `limit` and `slope`
//            "silu_gate_quantize" and so on: then quantize_rows
//            absent:         y
//
// The bias of a gate has the order of the weight's rows. fused_expert_matmul
// (experts.h) has the same epilogues, but for the residual.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "ops/attributes.h"
#include "ops/kernels/matmul/matmul.h"

namespace weft {

// What joins gate and up.
struct GateParts {
  GateActivation activation = GateActivation::kSilu;
  double limit = 0;  // of kClamped
  double slope = 0;
};

// What each FusedEpilogue is, and the names that attributes have for them.
struct EpilogueParts {
  MatmulEpilogue epilogue = MatmulEpilogue::kStore;
  GateActivation activation = GateActivation::kSilu;
};
constexpr int kFusedEpilogues = 8;
extern const EpilogueParts kEpilogueParts[kFusedEpilogues];
inline constexpr const char* kEpilogueNames[kFusedEpilogues] = {
    "",          "residual",           "silu_gate",    "silu_gate_quantize",
    "gelu_gate", "gelu_gate_quantize", "clamped_gate", "clamped_gate_quantize"};
FusedEpilogue FusedEpilogueOf(const EpilogueParts& parts);

// The reference of these gates, for a row of 16 of gate and 16 of up in turn.
std::vector<double> GatedRow(const GateParts& gate,
                             const std::vector<double>& row);

// Limit and slope are there when the activation wants them, or not at all.
absl::Status CheckGate(const Node& node, const GateParts& gate);

// Also describes a plain `matmul`.
struct MatmulParts {
  ValueId x = kNone;
  ValueId weight = kNone;
  // Positions among the operands; -1 when absent.
  int norm = -1;
  int norm_bias = -1;
  int bias = -1;
  int residual = -1;
  bool layer_norm = false;  // the norm is LayerNorm, not RMSNorm
  double eps = 0;
  bool quantize = false;
  MatmulEpilogue epilogue = MatmulEpilogue::kStore;
  GateParts gate;
};

// The operands behind x and weight; kNone when absent.
struct MatmulOperands {
  ValueId norm = kNone;
  ValueId norm_bias = kNone;
  ValueId bias = kNone;
  ValueId residual = kNone;
};

// Requires a matmul or fused_matmul of a verified graph.
MatmulParts PartsOf(const Node& node);
MatmulOperands OperandsOf(const Node& node);

// The node's operands and attributes for these parts; positions in `parts` do
// not matter.
void SetParts(const MatmulParts& parts, const MatmulOperands& operands,
              Node* node);

bool IsMatmul(const Node& node);

}  // namespace weft
