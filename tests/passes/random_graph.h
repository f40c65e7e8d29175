// Random language models made of the primitive ops, for tests of the passes.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace weft {

struct RandomModel {
  Graph graph;  // verified; weights have no bytes (random_weights.h)
  int64_t vocabulary;
  // Some weight is of a block type: results depend on how activations are
  // rounded.
  bool quantized;
  // A state is written twice in a step, so chunks of a text do not see what the
  // whole text does.
  bool rewrites_state;
};

// The same seed gives the same model: an embedding, some random mixture of what
// models are made of (norms, products with and without biases, residuals,
// gates, attention, slices, element-wise ops of all records, repeated and dead
// nodes), the wanted rows and their
// logits. With `more_outputs`, further values are outputs, which the executor
// does not know.
RandomModel MakeRandomModel(uint32_t seed, bool more_outputs = false);

}  // namespace weft
