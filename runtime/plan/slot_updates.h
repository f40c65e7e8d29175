// Nodes that update states by sequence, and what they read of a step: who keeps
// these rows can run such a node again without the rest of the model
// (runtime/execution/state_history.h).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace weft {

// Operands or results of a node that have a row for each token.
struct TokenRows {
  int index;
  int64_t bytes;  // of a row
};

struct SlotUpdate {
  NodeId node;
  int state;  // the how many-th of the graph
  std::vector<TokenRows> operands, results;
  // Operands; -1: it has none.
  int positions = -1, sequence = -1;

  // Of all operands' rows for one token, and of all results'.
  int64_t operand_bytes() const;
  int64_t result_bytes() const;
};

// In the order of the graph, whose nodes are ordered and verified.
std::vector<SlotUpdate> SlotUpdates(const Graph& graph);

// What is kept beside states so that each of `slots` can go back up to
// `rows` rows; 0 for graphs without states by sequence.
int64_t HistoryBytes(const std::vector<SlotUpdate>& updates, int64_t slots,
                     int64_t rows);

}  // namespace weft
