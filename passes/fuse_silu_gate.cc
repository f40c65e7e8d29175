// Gate and up as one product whose epilogue joins them.
//
//   %4 = matmul(%3, $gate)              %w = interleave_rows($gate, $up)
//   %5 = matmul(%3, $up)                %8 = fused_matmul(%3, %w)
//   %6 = silu(%4)               ->           epilogue="silu_gate_quantize"
//   %7 = mul(%6, %5)
//   %8 = quantize_rows(%7)
//
// Without the last line the epilogue is "silu_gate". Both may have a bias, or
// be products of experts (expert_matmul, expert_add): fused_expert_matmul. Gate
// and up may also be the halves of one product: then the halves of its weight
// alternate. Where the two weights differ in type, or the rows of each (of each
// expert) do not fill panels, only silu and mul become silu_gate.
#include "ops/ops.h"
#include "passes/fuse_gate.h"
#include "passes/pass.h"

namespace weft {

namespace {

bool IsSilu(const Node& node) { return node.Is(kSiluOp); }

}  // namespace

absl::Status FuseSiluGate(Graph& graph, const PassOptions&) {
  FuseGate({[](Pattern gate, Pattern up, NodeId* node) {
              return MulOfActivation(IsSilu, std::move(gate), std::move(up),
                                     node);
            },
            [](const Node&) { return GateParts{GateActivation::kSilu}; },
            &kSiluGateOp},
           &graph);
  return absl::OkStatus();
}

}  // namespace weft
