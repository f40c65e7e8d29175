// Runs a planned graph in memory that is hostile to mistakes, as a check on the
// executor and on the plan: every byte of the arena that holds no live value is
// NaN, so are scratch memory, unwritten KV pages and outputs, and each kernel's
// work is done in two parts, the later one first.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "runtime/execution/executor.h"

namespace weft {

// Results by name (states left out), rows of this step only. Unlike the
// executor, takes any number of outputs. Requires a bucket of a verified plan
// whose weights have been made, a batch that it can take (`logits` is not
// used), and reserved pages.
std::map<std::string, std::vector<uint8_t>> RunPoisoned(const Graph& graph,
                                                        Isa isa,
                                                        const Batch& batch,
                                                        const KvCache& cache);

// Fills every page with NaN; for a cache that holds nothing yet.
void PoisonPages(const KvCache& cache, const Graph& graph);

}  // namespace weft
