// The written forms of one graph that `weft dump` knows.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/listing.h"

namespace weft {

// "text", "dot", ...: every name that --format takes, for messages.
std::string FormatNames();

// Usage errors: no such format; one of bytes, for a terminal (`path` empty); a
// message holds whole graphs, so `--layers` does not go with it.
absl::Status CheckFormat(const std::string& format, const std::string& path,
                         bool has_layers);

// A verified graph in this format (all but html, which shows a whole pipeline).
// Errors: svg needs Graphviz's `dot`.
absl::StatusOr<std::string> WriteGraph(const Graph& graph,
                                       const std::string& format,
                                       const NodeFilter& show);

}  // namespace weft
