// Several products of one operand as one.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace weft {

struct Product {
  NodeId matmul;
  ValueId bias;    // added to it; kNone: none
  ValueId result;  // with the bias
};

// Makes them one product named `name`, of their weights' rows one behind the
// other, before the first of them; their results become slices of its result.
// Requires two or more plain matmuls of one operand, weights alike but for the
// number of rows, biases for all or for none, and readers that take slices.
// What is left of them is dead.
void JoinProducts(Graph& graph, const std::vector<Product>& products,
                  const std::string& name);

}  // namespace weft
