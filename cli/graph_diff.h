// What a pass changed, as a difference of texts that a person can read.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "graph/listing.h"

namespace weft {

// A removed node would shift the number of every later value and so change
// every later line. Therefore what both graphs have keeps its number of before:
// nodes are the same if they have the same op and name, and values that take
// the same place in such nodes are the same; what is new counts on from the
// highest number of before. Empty when nothing changed.
std::string DiffGraphs(const Graph& before, const Graph& after,
                       absl::string_view before_label,
                       absl::string_view after_label, const NodeFilter& show);

}  // namespace weft
