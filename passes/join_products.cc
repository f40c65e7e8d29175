#include "passes/join_products.h"

#include "ops/fused_matmul.h"
#include "ops/ops.h"
#include "passes/insert_before.h"

namespace weft {
namespace {

// The product's weight, where the node `first` can read it: rows that are taken
// of a weight may be taken only later.
ValueId WeightBefore(Graph& graph, NodeId first, const Product& product) {
  const ValueId weight = graph.node(product.matmul).inputs[1];
  const Node* rows = graph.Producer(weight);
  if (rows == nullptr) return weight;
  const Node copy = *rows;
  return InsertBefore(graph, first,
                      Node(*copy.op, copy.inputs, copy.attributes, copy.name));
}

}  // namespace

void JoinProducts(Graph& graph, const std::vector<Product>& products,
                  const std::string& name) {
  const NodeId first = products[0].matmul;
  Node weights(kConcatRowsOp, {}, {}, name);
  Node biases(kConcatRowsOp, {}, {}, name + ".bias");
  for (const Product& product : products) {
    weights.inputs.push_back(WeightBefore(graph, first, product));
    biases.inputs.push_back(product.bias);
  }
  const ValueId x = graph.node(first).inputs[0];
  const ValueId weight = InsertBefore(graph, first, weights);
  Node joined(kMatmulOp, {x, weight}, {}, name);
  if (products[0].bias != kNone) {
    const ValueId bias = InsertBefore(graph, first, biases);
    MatmulOperands operands;
    operands.bias = bias;
    SetParts(PartsOf(joined), operands, &joined);
  }
  const ValueId all = InsertBefore(graph, first, joined);
  int64_t begin = 0;
  for (const Product& product : products) {
    const int64_t size = graph.value(product.result).type.shape[1].value;
    const Node slice(kSliceOp, {all}, SliceAttributes{begin, size},
                     graph.node(product.matmul).name);
    graph.ReplaceUses(product.result, InsertBefore(graph, first, slice));
    begin += size;
  }
}

}  // namespace weft
