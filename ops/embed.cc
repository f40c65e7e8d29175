// embed, take_rows and slice: choosing rows and columns.
#include "absl/strings/str_cat.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

absl::StatusOr<Types> InferEmbed(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 2, 2));
  WEFT_RETURN_IF_ERROR(WantIntegers(graph, node, 0, -1));
  WEFT_RETURN_IF_ERROR(WantWhole(graph, node, 1));
  const ValueType& table = OperandType(graph, node, 1);
  if (table.shape.rank() != 2 || table.shape[0].symbol != Dim::kNumber ||
      table.shape[1].symbol != Dim::kNumber ||
      FindWeightLayout(table.layout) == nullptr || table.dtype == DType::kI32 ||
      table.dtype == DType::kQ8Rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("embed wants a table [V,D], found ", table.ToString()));
  }
  return Types{
      FloatType({OperandType(graph, node, 0).shape[0], table.shape[1]})};
}

void RunEmbed(const ReferenceCall& call) {
  for (int64_t t = 0; t < call.outputs[0].rows; ++t) {
    WriteRow(call, 0, t, ReadRow(call, 1, Integers(call, 0)[t]));
  }
}

absl::StatusOr<Types> InferTakeRows(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 2, 2));
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  WEFT_RETURN_IF_ERROR(WantIntegers(graph, node, 1, -1));
  const ValueType& x = OperandType(graph, node, 0);
  if (x.shape.rank() != 2) {
    return absl::InvalidArgumentError("take_rows wants a matrix [T,D]");
  }
  return Types{FloatType({OperandType(graph, node, 1).shape[0], x.shape[1]})};
}

void RunTakeRows(const ReferenceCall& call) {
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    WriteRow(call, 0, r, ReadRow(call, 0, Integers(call, 1)[r]));
  }
}

absl::StatusOr<Types> InferSlice(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 1, 1));
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  const Shape& shape = OperandType(graph, node, 0).shape;
  if (shape.rank() != 2 || shape[1].symbol != Dim::kNumber) {
    return absl::InvalidArgumentError("slice wants a matrix [M,N]");
  }
  const int64_t columns = shape[1].value;
  WEFT_RETURN_IF_ERROR(WantInt(node, "begin", 0, columns - 1));
  const int64_t begin = node.attributes.Int("begin");
  WEFT_RETURN_IF_ERROR(WantInt(node, "size", 1, columns - begin));
  return Types{FloatType({shape[0], Dim::Number(node.attributes.Int("size"))})};
}

// Of a table, the rows that are taken.
int64_t EmbedRowsRead(const Graph&, const Node&, int operand,
                      const Bounds& bounds) {
  return operand == 1 ? bounds.tokens : -1;
}

int64_t TakenRowsRead(const Graph&, const Node&, int operand,
                      const Bounds& bounds) {
  return operand == 0 ? bounds.rows : -1;
}

constexpr IndexOperand kEmbedIndices[] = {{0, IndexKind::kRowOf, 1}};
constexpr IndexOperand kTakeRowsIndices[] = {{1, IndexKind::kRowOf, 0}};

}  // namespace

const OpDef kEmbedOp = {"embed",       true,       false,        nullptr,
                        false,         InferEmbed, RunEmbed,     nullptr,
                        kEmbedIndices, nullptr,    EmbedRowsRead};
const OpDef kTakeRowsOp = {"take_rows", true,         false,
                           nullptr,     false,        InferTakeRows,
                           RunTakeRows, nullptr,      kTakeRowsIndices,
                           nullptr,     TakenRowsRead};
// A view: there is nothing to run.
const OpDef kSliceOp = {"slice", true,       true,    nullptr,
                        false,   InferSlice, nullptr, nullptr};

}  // namespace weft
