// Graphs to protobuf messages and back (graph.proto).
//
// Weights go by name and type only; who reads a graph gives them their bytes.
// Thread-safe.
#pragma once

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/graph.pb.h"

namespace weft {

// The graph without erased nodes and unused values, renumbered
// (Graph::Compact). Graphs that print the same text give the same message.
GraphProto ToProto(const Graph& graph);

// The exact inverse for a compact graph. The message is untrusted: numbers of
// values, ids, enum values and attributes are checked here; whether the graph
// is legal is for VerifyGraph. Ops as in Parse (text_format.h). Errors name the
// node or value.
absl::StatusOr<Graph> FromProto(const GraphProto& proto, OpLookup find);

}  // namespace weft
