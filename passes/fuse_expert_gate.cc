// Gate and up of experts as one product whose epilogue joins them.
//
//   %5 = expert_matmul(%4, $gate, %ids)      %w = interleave_rows($gate, $up)
//   %6 = expert_matmul(%4, $up, %ids)        %9 = fused_expert_matmul(
//   %7 = silu(%5)                       ->            %4, %w, %ids)
//   %8 = mul(%7, %6)                             epilogue="silu_gate_quantize"
//   %9 = quantize_rows(%8)
//
// Without the last line the epilogue is "silu_gate". Where the two weights
// differ in type, or an expert's rows do not fill panels, nothing changes.
#include "ops/experts.h"
#include "ops/ops.h"
#include "passes/insert_before.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace weft {
namespace {

// Whether the rows of both, of each expert, can alternate panel by panel, and
// the result has whole blocks of so many columns.
bool CanInterleave(const ValueType& gate, const ValueType& up, int64_t experts,
                   int block) {
  const int64_t rows = gate.shape[0].value / experts;
  return gate == up && gate.layout.empty() && rows % kPanelRows == 0 &&
         rows % block == 0;
}

}  // namespace

absl::Status FuseExpertGate(Graph& graph, const PassOptions&) {
  ValueId x, gate, up, ids;
  NodeId up_id;
  const Pattern gate_product =
      Once(Op(kExpertMatmulOp, {Any(&x), Once(Weight(&gate)), Any(&ids)}));
  const Pattern up_product = Once(
      Op(kExpertMatmulOp, {Same(&x), Once(Weight(&up)), Same(&ids)}, &up_id));
  const Pattern products =
      EitherOrder(Op(kMulOp, {Once(Op(kSiluOp, {gate_product})), up_product}));
  const auto fuse = [&](NodeId last, ExpertEpilogue epilogue, int block) {
    const int64_t experts =
        graph.node(up_id).attributes.As<ExpertMatmulAttributes>().experts;
    if (!CanInterleave(graph.value(gate).type, graph.value(up).type, experts,
                       block)) {
      return;
    }
    const std::string name = graph.node(up_id).name + "_gate";
    const ValueId weight = InsertBefore(
        graph, last, Node(kInterleaveRowsOp, {gate, up}, {}, name));
    Node& fused = graph.node(last);
    fused.Become(kFusedExpertMatmulOp,
                 FusedExpertMatmulAttributes{experts, epilogue});
    fused.inputs = {x, weight, ids};
    fused.name = name;
  };
  ForEachMatch(graph, Op(kQuantizeRowsOp, {Once(products)}), [&](NodeId id) {
    fuse(id, ExpertEpilogue::kSiluGateQuantize, 32);
  });
  ForEachMatch(graph, products,
               [&](NodeId id) { fuse(id, ExpertEpilogue::kSiluGate, 1); });
  return absl::OkStatus();
}

}  // namespace weft
