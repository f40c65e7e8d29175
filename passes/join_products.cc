#include "passes/join_products.h"

#include "ops/fused_matmul.h"
#include "passes/insert_before.h"

namespace weft {

void JoinProducts(Graph& graph, const std::vector<Product>& products,
                  const std::string& name) {
  const NodeId first = products[0].matmul;
  Node weights{"concat_rows", {}, {}, {}, name};
  Node biases{"concat_rows", {}, {}, {}, name + ".bias"};
  for (const Product& product : products) {
    weights.inputs.push_back(graph.node(product.matmul).inputs[1]);
    biases.inputs.push_back(product.bias);
  }
  const ValueId x = graph.node(first).inputs[0];
  const ValueId weight = InsertBefore(graph, first, weights);
  Node joined{"matmul", {x, weight}, {}, {}, name};
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
    Node slice{"slice", {all}, {}, {}, graph.node(product.matmul).name};
    slice.attributes.Set("begin", begin);
    slice.attributes.Set("size", size);
    graph.ReplaceUses(product.result, InsertBefore(graph, first, slice));
    begin += size;
  }
}

}  // namespace weft
