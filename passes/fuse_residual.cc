// Bias and residual addition as the epilogue of the product before them.
//
//   %5 = matmul(%4, $w)
//   %6 = add(%5, $bias)         ->      %7 = fused_matmul(%4, $w, $bias, %2)
//   %7 = add(%6, %2)                         bias=1 epilogue="residual"
//
// Likewise expert_add with the expert_matmul before it.
//
// The sum may take the residual's memory, which then is read and written once.
#include "ops/fused_matmul.h"
#include "ops/ops.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace weft {
namespace {

bool TakesResidual(const Node& node) {
  return IsMatmul(node) && PartsOf(node).epilogue == MatmulEpilogue::kStore;
}

bool TakesBias(const Node& node) {
  return TakesResidual(node) && PartsOf(node).bias < 0;
}

// Makes `add` what the product gives with one or the other added.
void Fuse(Graph& graph, NodeId add, NodeId product, ValueId bias,
          ValueId residual) {
  const Node matmul = graph.node(product);
  MatmulParts parts = PartsOf(matmul);
  MatmulOperands operands = OperandsOf(matmul);
  if (bias != kNone) operands.bias = bias;
  operands.residual = residual;
  if (residual != kNone) parts.epilogue = MatmulEpilogue::kResidual;
  SetParts(parts, operands, &graph.node(add));
  graph.node(add).name = matmul.name;
}

}  // namespace

absl::Status FuseResidual(Graph& graph, const PassOptions&) {
  ValueId bias, residual;
  NodeId product;
  const Pattern biased =
      Op(kAddOp, {Once(OpThat(TakesBias, {}, &product)), Vector(&bias)});
  const Pattern added = EitherOrder(
      Op(kAddOp, {Once(OpThat(TakesResidual, {}, &product)), Rows(&residual)}));
  ForEachMatch(graph, biased,
               [&](NodeId add) { Fuse(graph, add, product, bias, kNone); });
  ForEachMatch(graph, added,
               [&](NodeId add) { Fuse(graph, add, product, kNone, residual); });
  ValueId ids;
  const Pattern of_experts =
      Op(kExpertAddOp,
         {Once(Op(kExpertMatmulOp, {}, &product)), Any(&bias), Any(&ids)});
  ForEachMatch(graph, of_experts, [&](NodeId add) {
    const Node& matmul = graph.node(product);
    if (matmul.inputs[2] != ids) return;
    Node& fused = graph.node(add);
    fused.name = matmul.name;
    fused.inputs = matmul.inputs;
    fused.inputs.push_back(bias);
    fused.Become(kFusedExpertMatmulOp,
                 FusedExpertMatmulAttributes{
                     matmul.attributes.As<ExpertMatmulAttributes>().experts});
  });
  return absl::OkStatus();
}

}  // namespace weft
