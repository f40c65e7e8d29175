// slice_rows, transpose_rows, concat_rows, interleave_rows and pack_weight:
// weights made of weights. Folded at compile time; left in a graph (with
// pack-weights switched off) they run in every step, slowly.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ops/kernels/matmul/matmul.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/weight_layout.h"
#include "ops/weight_source.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

absl::Status WantPlainWeight(const Graph& graph, const Node& node, int i) {
  WEFT_RETURN_IF_ERROR(WantWhole(graph, node, i));
  const ValueType& type = OperandType(graph, node, i);
  if (type.shape.rank() <= 2 && type.layout.empty() &&
      type.dtype != DType::kI32 && type.dtype != DType::kQ8Rows &&
      type.shape[0].symbol == Dim::kNumber &&
      (type.shape.rank() < 2 || type.shape[1].symbol == Dim::kNumber)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(node.op->name, " operand ", i,
                   ": want a weight row after row, found ", type.ToString()));
}

absl::StatusOr<Types> InferConcat(const Graph& graph, const Node& node) {
  ValueType result = OperandType(graph, node, 0);
  int64_t rows = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    WEFT_RETURN_IF_ERROR(WantPlainWeight(graph, node, static_cast<int>(i)));
    const ValueType& type = OperandType(graph, node, static_cast<int>(i));
    if (type.dtype != result.dtype ||
        type.shape.rank() != result.shape.rank() ||
        (type.shape.rank() == 2 && type.shape[1] != result.shape[1])) {
      return absl::InvalidArgumentError(
          absl::StrCat(node.op->name, " cannot join ", result.ToString(),
                       " and ", type.ToString()));
    }
    rows += type.shape[0].value;
  }
  Shape shape{Dim::Number(rows)};
  if (result.shape.rank() == 2) shape.Append(result.shape[1]);
  result.shape = shape;
  return Types{result};
}

absl::StatusOr<Types> InferInterleave(const Graph& graph, const Node& node) {
  absl::StatusOr<Types> types = InferConcat(graph, node);
  if (!types.ok()) return types;
  const ValueType& a = OperandType(graph, node, 0);
  const bool alike =
      node.inputs.size() == 1 || a == OperandType(graph, node, 1);
  if (!alike || (*types)[0].shape[0].value % (2 * kPanelRows) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "interleave_rows wants two halves alike of whole panels, found ",
        a.ToString()));
  }
  return types;
}

absl::StatusOr<Types> InferSliceRows(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantPlainWeight(graph, node, 0));
  ValueType type = OperandType(graph, node, 0);
  const auto slice = node.attributes.As<SliceRowsAttributes>();
  const int64_t rows = type.shape[0].value;
  if (rows % slice.parts != 0 || slice.begin > rows / slice.parts ||
      slice.size > rows / slice.parts - slice.begin) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.op->name, " cannot take rows ", slice.begin, " to ",
                     slice.begin + slice.size - 1, " of each of ", slice.parts,
                     " equal parts of ", type.ToString()));
  }
  Shape shape{Dim::Number(slice.parts * slice.size)};
  if (type.shape.rank() == 2) shape.Append(type.shape[1]);
  type.shape = shape;
  return Types{type};
}

absl::StatusOr<Types> InferTransposeRows(const Graph& graph, const Node& node) {
  absl::StatusOr<Types> types = InferSliceRows(graph, node);
  if (!types.ok()) return types;
  ValueType& type = (*types)[0];
  const auto slice = node.attributes.As<SliceRowsAttributes>();
  if (type.shape.rank() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("transpose_rows wants a matrix, found ", type.ToString()));
  }
  type.shape = Shape{Dim::Number(slice.parts * type.shape[1].value),
                     Dim::Number(slice.size)};
  type.dtype = WeightSource::TransposedType(type.dtype);
  return types;
}

absl::StatusOr<Types> InferPack(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantPlainWeight(graph, node, 0));
  ValueType type = OperandType(graph, node, 0);
  const std::string name = node.attributes.As<PackWeightAttributes>().layout;
  const WeightLayout* layout = FindWeightLayout(name);
  if (layout == nullptr || type.shape.rank() != 2 ||
      !layout->supports(type.dtype, type.shape[0].value, type.shape[1].value)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pack_weight: no layout '", name, "' for ", type.ToString()));
  }
  type.layout = name;
  return Types{type};
}

void RunWeightOp(const ReferenceCall& call) {
  WeightSource source;
  for (size_t i = 0; i < call.node.inputs.size(); ++i) {
    const ValueType& type = call.input_type(static_cast<int>(i));
    const auto* data = static_cast<const uint8_t*>(call.inputs[i].data);
    if (call.node.Is(kSliceRowsOp) || call.node.Is(kTransposeRowsOp)) {
      const auto slice = call.attributes<SliceRowsAttributes>();
      if (call.node.Is(kSliceRowsOp)) {
        source.AddSlice(type, data, slice.parts, slice.begin, slice.size);
      } else {
        source.SetTransposed(type, data, slice.parts, slice.begin, slice.size);
      }
    } else {
      source.Add(type, data);
    }
  }
  if (call.node.Is(kInterleaveRowsOp)) source.Interleave();
  source.Pack(call.output_type(0), static_cast<uint8_t*>(call.outputs[0].data));
}

constexpr OperandSchema kConcatOperands[] = {Repeated(WeightOperand("w"))};
constexpr OperandSchema kInterleaveOperands[] = {WeightOperand("gate"),
                                                 Optional(WeightOperand("up"))};
constexpr OperandSchema kPackOperands[] = {WeightOperand("w")};

constexpr AttributeSchema kSliceRowsAttributes[] = {
    Field<&SliceRowsAttributes::parts>("parts", "equal parts of the weight")
        .From(1, 1 << 16),
    Field<&SliceRowsAttributes::begin>("begin", "first row of each part")
        .From(0, 1 << 24),
    Field<&SliceRowsAttributes::size>("size", "how many rows of each part")
        .From(1, 1 << 24)};
constexpr AttributeSchema kPackAttributes[] = {
    Field<&PackWeightAttributes::layout>("layout", "a layout of weights")};

constexpr OpDef ConcatRows() {
  OpDef op;
  op.name = "concat_rows";
  op.meaning = "weights one below the other";
  op.operands = kConcatOperands;
  op.made_of = "weights of products that are joined";
  op.infer = InferConcat;
  op.reference = RunWeightOp;
  return op;
}

constexpr OpDef SliceRows() {
  OpDef op = ConcatRows();
  op.name = "slice_rows";
  op.meaning = "some rows of each of the equal parts of a weight";
  op.operands = kPackOperands;
  op.attributes = kSliceRowsAttributes;
  op.primitive = true;
  op.made_of = "";
  op.infer = InferSliceRows;
  return op;
}

constexpr OpDef TransposeRows() {
  OpDef op = SliceRows();
  op.name = "transpose_rows";
  op.meaning =
      "[parts*K,size]: some rows of each of the equal parts of a weight [N,K], "
      "each part transposed; quantised types become f16";
  op.infer = InferTransposeRows;
  return op;
}

constexpr OpDef InterleaveRows() {
  OpDef op = ConcatRows();
  op.name = "interleave_rows";
  op.meaning = "16 rows of each in turn, or of the two halves of one";
  op.operands = kInterleaveOperands;
  op.made_of = "weights of gate and up";
  op.infer = InferInterleave;
  return op;
}

constexpr OpDef PackWeight() {
  OpDef op = ConcatRows();
  op.name = "pack_weight";
  op.meaning = "the same rows, laid out anew";
  op.operands = kPackOperands;
  op.attributes = kPackAttributes;
  op.made_of = "a weight that a kernel reads in its layout";
  op.infer = InferPack;
  return op;
}

}  // namespace

absl::Span<const AttributeSchema> SliceRowsAttributes::Schema() {
  return kSliceRowsAttributes;
}
absl::Span<const AttributeSchema> PackWeightAttributes::Schema() {
  return kPackAttributes;
}

constexpr OpDef kSliceRowsOp = SliceRows();
constexpr OpDef kTransposeRowsOp = TransposeRows();
constexpr OpDef kConcatRowsOp = ConcatRows();
constexpr OpDef kInterleaveRowsOp = InterleaveRows();
constexpr OpDef kPackWeightOp = PackWeight();

}  // namespace weft
