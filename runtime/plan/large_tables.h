// Tables of embeddings so large that they are left where they lie, in the model
// or plan file: rows are read when tokens need them, nothing brings the rest
// into memory, and the system keeps what was read while it has room. Such are
// the vectors per token and block of Gemma's smaller models, some gigabytes of
// which a token needs a few kilobytes. PlanMemory does not count them, and
// WeightGuard does not compare their checksums.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace weft {

// A table of more bytes stays in its file.
constexpr int64_t kMostResidentTableBytes = int64_t{1} << 30;

// Whether a weight does: nothing but embeds reads it, and it is that large.
bool StaysInFile(const Graph& graph, ValueId weight);

// All such weights together.
int64_t BytesLeftInFile(const Graph& graph);

}  // namespace weft
