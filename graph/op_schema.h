// The declared half of an op: everything about it that can be read without
// running it. Nodes point at it; ops/op.h adds what computes.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/attributes.h"

namespace weft {

enum class OperandRole : uint8_t {
  kRows,    // numbers of this step, row after row
  kWeight,  // constants
  kState,   // lives from step to step
  kIndex,   // integers of this step
};

// What the numbers of an integer operand are. Kernels use them unchecked: who
// runs a graph sees to their range, by this.
enum class IndexKind : uint8_t {
  kRowOf,     // a row of another operand: below its first dimension
  kPosition,  // below the context
  kSequence,  // a slot of the KV cache
  kChosen,    // made by a node of the graph, in range by the op's own rule
  kAny,       // no index
};

struct OperandSchema {
  const char* name = "";
  OperandRole role = OperandRole::kRows;
  // May be absent; those behind it, too.
  bool optional = false;
  // The last one only: any number of them, one at least.
  bool repeated = false;
  // Of kIndex. `of`: the operand whose rows they are (kRowOf); `rows_of`: the
  // operand for each of whose rows there is one (-1: none).
  IndexKind index = IndexKind::kAny;
  int of = -1;
  int rows_of = -1;
  // Of kState: "keys", "values" or "" for either.
  const char* layout = "";
};

// One operand of each kind, for the lists of ops.
constexpr OperandSchema RowsOperand(const char* name) {
  OperandSchema operand;
  operand.name = name;
  return operand;
}
constexpr OperandSchema WeightOperand(const char* name) {
  OperandSchema operand;
  operand.name = name;
  operand.role = OperandRole::kWeight;
  return operand;
}
constexpr OperandSchema StateOperand(const char* name, const char* layout) {
  OperandSchema operand;
  operand.name = name;
  operand.role = OperandRole::kState;
  operand.layout = layout;
  return operand;
}
constexpr OperandSchema IndexOperand(const char* name, IndexKind kind,
                                     int rows_of, int of = -1) {
  OperandSchema operand;
  operand.name = name;
  operand.role = OperandRole::kIndex;
  operand.index = kind;
  operand.of = of;
  operand.rows_of = rows_of;
  return operand;
}
constexpr OperandSchema Optional(OperandSchema operand) {
  operand.optional = true;
  return operand;
}
constexpr OperandSchema Repeated(OperandSchema operand) {
  operand.repeated = true;
  return operand;
}

struct OpSchema {
  const char* name = "";
  // What the results are, in a line: "f32[M,N] = x weight^T".
  const char* meaning = "";
  absl::Span<const OperandSchema> operands;
  absl::Span<const AttributeSchema> attributes;
  // Loaders may emit it; the others are made by passes.
  bool primitive = false;
  // Result 0 is a window into operand 0: no bytes of its own.
  bool view = false;
  // Result 0 is a new version of the state operand 0.
  bool writes_state = false;
  // Of an op that passes make of others: which nodes it stands for.
  const char* made_of = "";
  // False for an op that is read from a text or a file but that nobody knows.
  bool known = true;

  int least_operands() const;
  int most_operands() const;
};

// By name; null when there is none. Given from above (ops/op_table.h): graph/
// itself knows no op.
using OpLookup = const OpSchema* (*)(absl::string_view name);

// An op of this name that is not known, with these attributes: so that a graph
// can be read, and what it lacks be named. It verifies nowhere.
std::shared_ptr<const OpSchema> MakeUnknownOp(
    absl::string_view name,
    absl::Span<const std::pair<std::string, AttributeValue>> attributes);

}  // namespace weft
