// RMSNorm, and the rounding of its result, as the prologue of a product.
//
//   %3 = rms_norm(%2, $norm) eps=1e-05
//   %4 = quantize_rows(%3)              %5 = fused_matmul(%2, $w, $norm)
//   %5 = matmul(%4, $w)         ->           eps=1e-05 quantize=1
//
// A norm whose rounded result several products read becomes rms_norm_quantize:
// they share it. A norm that several float products read stays as it is.
#include "ops/fused_matmul.h"
#include "passes/pass.h"

namespace weft {
namespace {

// Moves the norm into the product that alone reads `normed`. False when it
// cannot.
bool FuseIntoMatmul(Graph& graph, const Node& norm, ValueId normed,
                    bool quantize) {
  const NodeId user = graph.OnlyUser(normed);
  if (user == kNone || !IsMatmul(graph.node(user))) return false;
  Node& matmul = graph.node(user);
  MatmulParts parts = PartsOf(matmul);
  if (parts.norm >= 0 || parts.x != normed ||
      graph.value(norm.inputs[0]).type.shape.rank() != 2) {
    return false;
  }
  const ValueId bias = parts.bias < 0 ? kNone : matmul.inputs[parts.bias];
  const ValueId residual =
      parts.residual < 0 ? kNone : matmul.inputs[parts.residual];
  parts.x = norm.inputs[0];
  parts.eps = norm.attributes.Float("eps");
  parts.quantize = quantize;
  SetParts(parts, norm.inputs[1], bias, residual, &matmul);
  return true;
}

}  // namespace

absl::Status FuseRmsNormMatmul(Graph& graph, const PassOptions&) {
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    if (graph.node(id).op != "rms_norm") continue;
    const Node norm = graph.node(id);
    const ValueId normed = norm.outputs[0];
    const NodeId user = graph.OnlyUser(normed);
    if (user != kNone && graph.node(user).op == "quantize_rows") {
      if (!FuseIntoMatmul(graph, norm, graph.node(user).outputs[0], true)) {
        Node& quantize = graph.node(user);
        quantize.op = "rms_norm_quantize";
        quantize.inputs = norm.inputs;
        quantize.attributes = norm.attributes;
        quantize.name = norm.name;
      }
    } else {
      FuseIntoMatmul(graph, norm, normed, false);
    }
  }
  graph.EraseDead();
  return absl::OkStatus();
}

}  // namespace weft
