#include "passes/fuse_norm.h"

#include "ops/fused_matmul.h"
#include "ops/ops.h"
#include "passes/match.h"

namespace weft {
namespace {

bool TakesNorm(const Node& node) {
  return IsMatmul(node) && PartsOf(node).norm < 0;
}

// Makes the norm of x a part of the product.
void Fuse(Graph* graph, NodeId product, const Node& norm, bool quantize) {
  Node& matmul = graph->node(product);
  MatmulParts parts = PartsOf(matmul);
  MatmulOperands operands = OperandsOf(matmul);
  parts.x = norm.inputs[0];
  parts.layer_norm = norm.Is(kLayerNormOp);
  parts.eps = norm.attributes.As<NormAttributes>().eps;
  parts.quantize = quantize;
  operands.norm = norm.inputs[1];
  if (norm.inputs.size() > 2) operands.norm_bias = norm.inputs[2];
  SetParts(parts, operands, &matmul);
}

}  // namespace

void FuseNorm(const OpSchema& op, const OpSchema& rounded_op, Graph* graph) {
  ValueId x;
  NodeId norm;
  const auto is_norm = [&op](const Node& node) {
    return node.Is(op) && node.inputs.size() > 1 &&
           node.attributes.As<NormAttributes>().heads == 1;
  };
  const Pattern normed = Once(OpThat(is_norm, {Any(&x)}, &norm));
  const Pattern rounded = Op(kQuantizeRowsOp, {normed});
  ForEachMatch(*graph, OpThat(TakesNorm, {normed}), [&](NodeId product) {
    Fuse(graph, product, graph->node(norm), false);
  });
  ForEachMatch(*graph, OpThat(TakesNorm, {Once(rounded)}), [&](NodeId product) {
    Fuse(graph, product, graph->node(norm), true);
  });
  // What is left has several readers.
  ForEachMatch(*graph, rounded, [&](NodeId id) {
    Node& quantize = graph->node(id);
    quantize.Become(rounded_op,
                    NormQuantizeAttributes{
                        graph->node(norm).attributes.As<NormAttributes>().eps});
    quantize.inputs = graph->node(norm).inputs;
    quantize.name = graph->node(norm).name;
  });
}

}  // namespace weft
