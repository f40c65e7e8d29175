// Bias and residual addition as the epilogue of the product before them.
//
//   %5 = matmul(%4, $w)
//   %6 = add(%5, $bias)         ->      %7 = fused_matmul(%4, $w, $bias, %2)
//   %7 = add(%6, %2)                         bias=1 epilogue="residual"
//
// The sum may take the residual's memory, which then is read and written once.
#include "ops/fused_matmul.h"
#include "passes/pass.h"

namespace weft {
namespace {

// Makes the add a product with this epilogue. False when it cannot.
bool Fuse(Graph& graph, NodeId add, int product_side) {
  const ValueId product = graph.node(add).inputs[product_side];
  const ValueId other = graph.node(add).inputs[1 - product_side];
  const Node* producer = graph.Producer(product);
  if (producer == nullptr || !IsMatmul(*producer) || product == other ||
      graph.OnlyUser(product) != add) {
    return false;
  }
  MatmulParts parts = PartsOf(*producer);
  if (parts.epilogue != MatmulEpilogue::kStore) return false;
  const bool vector = graph.value(other).type.shape.rank() == 1;
  if (vector && (parts.bias >= 0 || product_side != 0)) return false;
  const ValueId norm = parts.norm < 0 ? kNone : producer->inputs[parts.norm];
  ValueId bias = parts.bias < 0 ? kNone : producer->inputs[parts.bias];
  ValueId residual = kNone;
  if (vector) {
    bias = other;
  } else {
    residual = other;
    parts.epilogue = MatmulEpilogue::kResidual;
  }
  const std::string name = producer->name;
  SetParts(parts, norm, bias, residual, &graph.node(add));
  graph.node(add).name = name;
  return true;
}

}  // namespace

absl::Status FuseResidual(Graph& graph, const PassOptions&) {
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    if (graph.node(id).op != "add") continue;
    if (!Fuse(graph, id, 0)) Fuse(graph, id, 1);
  }
  graph.EraseDead();
  return absl::OkStatus();
}

}  // namespace weft
