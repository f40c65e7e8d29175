// RMSNorm, and the rounding of its result, as the prologue of a product.
//
//   %3 = rms_norm(%2, $norm) eps=1e-05
//   %4 = quantize_rows(%3)              %5 = fused_matmul(%2, $w, $norm)
//   %5 = matmul(%4, $w)         ->           eps=1e-05 quantize=1
//
// A norm whose rounded result several products read becomes rms_norm_quantize:
// they share it. A norm that several float products read stays as it is.
#include "ops/fused_matmul.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace weft {
namespace {

bool TakesNorm(const Node& node) {
  return IsMatmul(node) && PartsOf(node).norm < 0;
}

// Makes the norm of x a part of the product.
void Fuse(Graph& graph, NodeId product, ValueId x, const Node& norm,
          bool quantize) {
  Node& matmul = graph.node(product);
  MatmulParts parts = PartsOf(matmul);
  const ValueId bias = parts.bias < 0 ? kNone : matmul.inputs[parts.bias];
  const ValueId residual =
      parts.residual < 0 ? kNone : matmul.inputs[parts.residual];
  parts.x = x;
  parts.eps = norm.attributes.Float("eps");
  parts.quantize = quantize;
  SetParts(parts, norm.inputs[1], bias, residual, &matmul);
}

}  // namespace

absl::Status FuseRmsNormMatmul(Graph& graph, const PassOptions&) {
  ValueId x;
  NodeId norm;
  const Pattern normed = Once(Op("rms_norm", {Any(&x)}, &norm));
  const Pattern rounded = Op("quantize_rows", {normed});
  ForEachMatch(graph, OpThat(TakesNorm, {normed}), [&](NodeId product) {
    Fuse(graph, product, x, graph.node(norm), false);
  });
  ForEachMatch(graph, OpThat(TakesNorm, {Once(rounded)}), [&](NodeId product) {
    Fuse(graph, product, x, graph.node(norm), true);
  });
  // What is left has several readers.
  ForEachMatch(graph, rounded, [&](NodeId id) {
    Node& quantize = graph.node(id);
    quantize.op = "rms_norm_quantize";
    quantize.inputs = graph.node(norm).inputs;
    quantize.attributes = graph.node(norm).attributes;
    quantize.name = graph.node(norm).name;
  });
  return absl::OkStatus();
}

}  // namespace weft
