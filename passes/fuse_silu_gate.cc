// Gate and up as one product whose epilogue joins them.
//
//   %4 = matmul(%3, $gate)              %w = interleave_rows($gate, $up)
//   %5 = matmul(%3, $up)                %8 = fused_matmul(%3, %w)
//   %6 = silu(%4)               ->           epilogue="silu_gate_quantize"
//   %7 = mul(%6, %5)
//   %8 = quantize_rows(%7)
//
// Without the last line the epilogue is "silu_gate". Gate and up may also be
// the halves of one product: then the halves of its weight alternate. Where the
// two weights differ in type, or their rows do not fill panels, only silu and
// mul become silu_gate.
#include "ops/ops.h"
#include "passes/fuse_gate.h"
#include "passes/pass.h"

namespace weft {

absl::Status FuseSiluGate(Graph& graph, const PassOptions&) {
  FuseGate({&kSiluGateOp, GateActivation::kSilu,
            [](const Node& node) { return node.Is(kSiluOp); }},
           &graph);
  return absl::OkStatus();
}

}  // namespace weft
