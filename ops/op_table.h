// The vocabulary: every op, by name.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/registration.h"
#include "graph/verify.h"
#include "ops/op.h"

namespace weft {

// In order of the table, those registered last. Thread-safe; valid until the
// next registration.
absl::Span<const OpDef* const> AllOps();

// Adds an op to the vocabulary: graphs may have it, in memory, as text and in
// plan files, and it runs by its reference function until there is a kernel
// (kernel_table.h). `op` must live as long as the registration. Errors: no name
// of lower-case letters, digits and underscores, one that is taken, no rule, no
// reference function, a view (slice is the only one).
absl::StatusOr<Registration> RegisterOp(const OpDef* op);

// Moves on when an op comes or goes.
int64_t OpTableVersion();

// Null when there is no such op.
const OpDef* FindOp(absl::string_view name);
// The same, for what reads graphs (graph/text_format.h, graph/serialize.h).
const OpSchema* FindOpSchema(absl::string_view name);

// The record of a node whose op is in the table: of a verified graph, or made
// of a record.
const OpDef& OpOf(const Node& node);

// A state, or a later version of one: no value of a step's own. Ids and ops as
// above.
bool IsStateVersion(const Graph& graph, ValueId value);

// Types of the node's results by its op's record and rule, or what is wrong
// with its operands or attributes: a line that names op, attribute and what it
// may be. Operand ids must be in range.
absl::StatusOr<std::vector<ValueType>> ResultTypes(const Graph& graph,
                                                   const Node& node);

// Parse (graph/text_format.h) with the ops of the table.
absl::StatusOr<Graph> ParseGraph(absl::string_view text);

// The rules that graph/verify.h asks for.
const OpRules& TableRules();

// Verify(graph, TableRules()), and layouts of weights and states that exist.
absl::Status VerifyGraph(const Graph& graph);

// What a step of `bounds` costs: its tokens and output rows, and every row
// attending to `bounds.context` positions. Exact for memory that is read or
// written once; of fused nodes, operations of the product alone are counted.
Cost NodeCost(const Graph& graph, const Node& node, const Bounds& bounds);

}  // namespace weft
