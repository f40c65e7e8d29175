// The vocabulary: every op, by name.
#pragma once

#include "absl/types/span.h"
#include "graph/verify.h"
#include "ops/op.h"

namespace weft {

// In order of the table. Thread-safe.
absl::Span<const OpDef* const> AllOps();

// Null when there is no such op.
const OpDef* FindOp(absl::string_view name);

// The same, for a node of a verified graph.
const OpDef& OpOf(const Node& node);

// The rules that graph/verify.h asks for.
const OpRules& TableRules();

// Verify(graph, TableRules()), and layouts of weights and states that exist.
absl::Status VerifyGraph(const Graph& graph);

Cost NodeCost(const Graph& graph, const Node& node, const Bounds& bounds);

}  // namespace weft
