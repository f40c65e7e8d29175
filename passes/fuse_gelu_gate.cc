// Gate and up as one product whose epilogue joins them, with GELU as tanh
// approximates it.
//
//   %4 = matmul(%3, $gate)              %w = interleave_rows($gate, $up)
//   %5 = matmul(%3, $up)                %8 = fused_matmul(%3, %w)
//   %6 = gelu(%4)               ->           epilogue="gelu_gate_quantize"
//   %7 = mul(%6, %5)
//   %8 = quantize_rows(%7)
//
// Otherwise as fuse-silu-gate.
#include "ops/ops.h"
#include "passes/fuse_gate.h"
#include "passes/pass.h"

namespace weft {

namespace {

bool IsGeluTanh(const Node& node) {
  return node.Is(kGeluOp) &&
         node.attributes.As<GeluAttributes>().approximation ==
             GeluApproximation::kTanh;
}

}  // namespace

absl::Status FuseGeluGate(Graph& graph, const PassOptions&) {
  FuseGate({[](Pattern gate, Pattern up, NodeId* node) {
              return MulOfActivation(IsGeluTanh, std::move(gate), std::move(up),
                                     node);
            },
            [](const Node&) { return GateParts{GateActivation::kGeluTanh}; },
            &kGeluGateOp},
           &graph);
  return absl::OkStatus();
}

}  // namespace weft
