// Gate and up as one product whose epilogue joins them, where both are clamped.
//
//   %4 = expert_matmul(%3, $gate, %ids)
//   %5 = expert_add(%4, $gate_bias, %ids)   %w = interleave_rows($gate, $up)
//   %6 = expert_matmul(%3, $up, %ids)       %b = interleave_rows($gate_bias,
//   %7 = expert_add(%6, $up_bias, %ids)                          $up_bias)
//   %8 = clamped_gate(%5, %7)          ->   %9 = fused_expert_matmul(
//   %9 = quantize_rows(%8)                       %3, %w, %ids, %b)
//                                              epilogue="clamped_gate_quantize"
//
// Otherwise as fuse-silu-gate, for products without experts too.
#include "ops/ops.h"
#include "passes/fuse_gate.h"
#include "passes/pass.h"

namespace weft {

absl::Status FuseClampedGate(Graph& graph, const PassOptions&) {
  FuseGate(
      {[](Pattern gate, Pattern up, NodeId* node) {
         return Op(kClampedGateOp, {std::move(gate), std::move(up)}, node);
       },
       [](const Node& node) {
         const auto clamp = node.attributes.As<ClampedGateAttributes>();
         return GateParts{GateActivation::kClamped, clamp.limit, clamp.slope};
       },
       nullptr},
      &graph);
  return absl::OkStatus();
}

}  // namespace weft
