// What a pass changed, or in what two plans differ, as a difference of texts
// that a person can read.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "graph/listing.h"
#include "runtime/plan/plan.h"

namespace weft {

// A removed node would shift the number of every later value and so change
// every later line. Therefore what both graphs have keeps its number of before:
// nodes are the same if they have the same op and name, and values that take
// the same place in such nodes are the same; what is new counts on from the
// highest number of before. Empty when nothing changed.
std::string DiffGraphs(const Graph& before, const Graph& after,
                       absl::string_view before_label,
                       absl::string_view after_label, const NodeFilter& show);

// Sections of unified differences, each headed by both labels and what it is
// of: the model, the options, the passes, the tensors, the checksums of packed
// weights, kernels by how many nodes have them, and the graph of each number of
// tokens that both plans have. A section without a difference is left out;
// empty where there is none at all. `tokens`: of this graph alone, and its
// kernels; 0: of all.
std::string DiffPlans(const Plan& before, const Plan& after,
                      absl::string_view before_label,
                      absl::string_view after_label, int64_t tokens,
                      const NodeFilter& show);

}  // namespace weft
