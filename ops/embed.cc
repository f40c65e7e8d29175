// embed, take_rows, mean_rows and slice: choosing rows and columns.
#include "absl/strings/str_cat.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

absl::StatusOr<Types> InferEmbed(const Graph& graph, const Node& node) {
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
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
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

// Of each row that is asked for, the mean over the rows of its sequence.
void RunMeanRows(const ReferenceCall& call) {
  const int32_t* sequence = Integers(call, 1);
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    const int32_t wanted = sequence[Integers(call, 2)[r]];
    std::vector<double> sums(call.outputs[0].columns);
    int64_t count = 0;
    for (int64_t t = 0; t < call.inputs[0].rows; ++t) {
      if (sequence[t] != wanted) continue;
      const std::vector<double> row = ReadRow(call, 0, t);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += row[i];
      ++count;
    }
    for (double& sum : sums) sum /= static_cast<double>(count);
    WriteRow(call, 0, r, sums);
  }
}

absl::StatusOr<Types> InferMeanRows(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  const ValueType& x = OperandType(graph, node, 0);
  if (x.shape.rank() != 2) {
    return absl::InvalidArgumentError("mean_rows wants a matrix [T,D]");
  }
  return Types{FloatType({OperandType(graph, node, 2).shape[0], x.shape[1]})};
}

absl::StatusOr<Types> InferSlice(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  const Shape& shape = OperandType(graph, node, 0).shape;
  if (shape.rank() != 2 || shape[1].symbol != Dim::kNumber) {
    return absl::InvalidArgumentError("slice wants a matrix [M,N]");
  }
  const int64_t columns = shape[1].value;
  const auto [begin, size] = node.attributes.As<SliceAttributes>();
  if (begin >= columns || size > columns - begin) {
    return absl::InvalidArgumentError(absl::StrCat("slice attribute size: is ",
                                                   size, " from ", begin,
                                                   " on, want columns "
                                                   "of ",
                                                   shape.ToString()));
  }
  return Types{FloatType({shape[0], Dim::Number(size)})};
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

constexpr OperandSchema kEmbedOperands[] = {
    IndexOperand("ids", IndexKind::kRowOf, -1, 1), WeightOperand("table")};
constexpr OperandSchema kTakeRowsOperands[] = {
    RowsOperand("x"), IndexOperand("rows", IndexKind::kRowOf, -1, 0)};
constexpr OperandSchema kMeanRowsOperands[] = {
    RowsOperand("x"), IndexOperand("sequence", IndexKind::kSequence, 0),
    IndexOperand("rows", IndexKind::kRowOf, -1, 0)};
constexpr OperandSchema kSliceOperands[] = {RowsOperand("x")};

constexpr AttributeSchema kSliceAttributes[] = {
    Field<&SliceAttributes::begin>("begin", "the first column")
        .From(0, int64_t{1} << 32),
    Field<&SliceAttributes::size>("size", "how many columns")
        .From(1, int64_t{1} << 32)};

constexpr OpDef Embed() {
  OpDef op;
  op.name = "embed";
  op.meaning = "f32[T,D]: rows ids i32[T] of table [V,D]";
  op.operands = kEmbedOperands;
  op.primitive = true;
  op.infer = InferEmbed;
  op.reference = RunEmbed;
  op.rows_read = EmbedRowsRead;
  return op;
}

constexpr OpDef TakeRows() {
  OpDef op;
  op.name = "take_rows";
  op.meaning = "f32[R,D]: rows i32[R] of x f32[T,D]";
  op.operands = kTakeRowsOperands;
  op.primitive = true;
  op.infer = InferTakeRows;
  op.reference = RunTakeRows;
  op.rows_read = TakenRowsRead;
  return op;
}

constexpr OpDef MeanRows() {
  OpDef op;
  op.name = "mean_rows";
  op.meaning =
      "f32[R,D]: of each of the rows i32[R], the mean of the rows of x "
      "f32[T,D] "
      "with its sequence";
  op.operands = kMeanRowsOperands;
  op.primitive = true;
  op.infer = InferMeanRows;
  op.reference = RunMeanRows;
  return op;
}

// A view: there is nothing to run.
constexpr OpDef Slice() {
  OpDef op;
  op.name = "slice";
  op.meaning = "a view of columns of x f32[M,N]";
  op.operands = kSliceOperands;
  op.attributes = kSliceAttributes;
  op.primitive = true;
  op.view = true;
  op.infer = InferSlice;
  return op;
}

}  // namespace

absl::Span<const AttributeSchema> SliceAttributes::Schema() {
  return kSliceAttributes;
}

constexpr OpDef kEmbedOp = Embed();
constexpr OpDef kTakeRowsOp = TakeRows();
constexpr OpDef kMeanRowsOp = MeanRows();
constexpr OpDef kSliceOp = Slice();

}  // namespace weft
