#include "passes/fuse_norm.h"

#include "ops/fused_matmul.h"
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
  parts.layer_norm = norm.op == "layer_norm";
  parts.eps = norm.attributes.Float("eps");
  parts.quantize = quantize;
  operands.norm = norm.inputs[1];
  if (norm.inputs.size() > 2) operands.norm_bias = norm.inputs[2];
  SetParts(parts, operands, &matmul);
}

}  // namespace

void FuseNorm(const std::string& op, Graph* graph) {
  ValueId x;
  NodeId norm;
  const auto is_norm = [&op](const Node& node) {
    return node.op == op && node.attributes.Int("heads", 1) == 1;
  };
  const Pattern normed = Once(OpThat(is_norm, {Any(&x)}, &norm));
  const Pattern rounded = Op("quantize_rows", {normed});
  ForEachMatch(*graph, OpThat(TakesNorm, {normed}), [&](NodeId product) {
    Fuse(graph, product, graph->node(norm), false);
  });
  ForEachMatch(*graph, OpThat(TakesNorm, {Once(rounded)}), [&](NodeId product) {
    Fuse(graph, product, graph->node(norm), true);
  });
  // What is left has several readers.
  ForEachMatch(*graph, rounded, [&](NodeId id) {
    Node& quantize = graph->node(id);
    quantize.op = op + "_quantize";
    quantize.inputs = graph->node(norm).inputs;
    quantize.attributes = graph->node(norm).attributes;
    quantize.name = graph->node(norm).name;
  });
}

}  // namespace weft
