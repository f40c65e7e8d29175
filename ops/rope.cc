// rope, and the two ways of writing keys and values: kv_write and
// rope_kv_write.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/storage.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

// Checks x [M, heads * head_dim] at operand `x`, factors at `factors` if
// present.
absl::Status CheckRope(const Graph& graph, const Node& node, int x,
                       int factors) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, x));
  const Shape& shape = OperandType(graph, node, x).shape;
  const RopeAttributes rope = node.attributes.As<RopeAttributes>();
  if (shape.rank() != 2 || shape[1].symbol != Dim::kNumber ||
      shape[1].value % rope.head_dim != 0 || rope.rope_dims % 2 != 0 ||
      rope.rope_dims > rope.head_dim) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.op->name, ": ", shape.ToString(),
                     " does not divide into heads of ", rope.head_dim, " with ",
                     rope.rope_dims, " rotated"));
  }
  if (rope.ramp_end != 0 ? rope.ramp_end <= rope.ramp_begin
                         : rope.ramp_begin != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op->name, " attribute ramp_end: is ", rope.ramp_end,
        ", want a finite number above ramp_begin, ", rope.ramp_begin));
  }
  if (static_cast<int>(node.inputs.size()) > factors) {
    WEFT_RETURN_IF_ERROR(
        WantVector(graph, node, factors, Dim::Number(rope.rope_dims / 2)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> InferRope(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(CheckRope(graph, node, 0, 2));
  return Types{FloatType(OperandType(graph, node, 0).shape)};
}

absl::Status CheckKvWrite(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 1));
  const ValueType& state = OperandType(graph, node, 0);
  const Shape& x = OperandType(graph, node, 1).shape;
  if (x.rank() != 2 ||
      x[1].value != state.shape[1].value * state.shape[2].value) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.op->name, " cannot write ", x.ToString(), " into ",
                     state.ToString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> InferKvWrite(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(CheckKvWrite(graph, node));
  return Types{OperandType(graph, node, 0)};
}

absl::StatusOr<Types> InferRopeKvWrite(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(CheckKvWrite(graph, node));
  WEFT_RETURN_IF_ERROR(CheckRope(graph, node, 1, 4));
  if (OperandType(graph, node, 0).shape[2].value !=
      node.attributes.As<RopeAttributes>().head_dim) {
    return absl::InvalidArgumentError("rope_kv_write: head sizes differ");
  }
  return Types{OperandType(graph, node, 0)};
}

void RotateRow(const RopeAttributes& rope, double position,
               const std::vector<double>& factors, std::vector<double>* row) {
  const int64_t head_dim = rope.head_dim, rope_dims = rope.rope_dims;
  const bool halves = rope.style == RopeStyle::kHalves;
  for (size_t head = 0; head < row->size(); head += head_dim) {
    for (int64_t i = 0; i < rope_dims / 2; ++i) {
      double frequency = std::pow(rope.base, -2.0 * i / rope_dims);
      if (!factors.empty()) frequency /= factors[i];
      double scaled = 1;  // how far towards `scale`
      if (rope.ramp_end > 0) {
        scaled = (i - rope.ramp_begin) / (rope.ramp_end - rope.ramp_begin);
        scaled = std::fmin(1, std::fmax(0, scaled));
      }
      const double angle =
          position * (1 + (rope.scale - 1) * scaled) * frequency;
      double& a = (*row)[head + (halves ? i : 2 * i)];
      double& b = (*row)[head + (halves ? i + rope_dims / 2 : 2 * i + 1)];
      const double cosine = rope.magnitude * std::cos(angle);
      const double sine = rope.magnitude * std::sin(angle);
      const double rotated = a * cosine - b * sine;
      b = a * sine + b * cosine;
      a = rotated;
    }
  }
}

std::vector<double> Factors(const ReferenceCall& call, size_t operand) {
  if (call.node.inputs.size() <= operand) return {};
  return ReadRow(call, static_cast<int>(operand), 0);
}

void RunRope(const ReferenceCall& call) {
  const RopeAttributes rope = call.attributes<RopeAttributes>();
  const std::vector<double> factors = Factors(call, 2);
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    std::vector<double> row = ReadRow(call, 0, r);
    RotateRow(rope, Integers(call, 1)[r], factors, &row);
    WriteRow(call, 0, r, row);
  }
}

void WriteRows(const ReferenceCall& call, bool rotate) {
  const RopeAttributes rope =
      rotate ? call.attributes<RopeAttributes>() : RopeAttributes();
  const ValueType& state = call.input_type(0);
  const std::vector<double> factors =
      rotate ? Factors(call, 4) : std::vector<double>();
  const int64_t head_dim = state.shape[2].value;
  for (int64_t r = 0; r < call.inputs[1].rows; ++r) {
    std::vector<double> row = ReadRow(call, 1, r);
    const int32_t position = Integers(call, 2)[r];
    if (rotate) RotateRow(rope, position, factors, &row);
    for (int64_t head = 0; head < state.shape[1].value; ++head) {
      WriteKv(state, *call.inputs[0].state, Integers(call, 3)[r], position,
              head,
              std::vector<double>(row.begin() + head * head_dim,
                                  row.begin() + (head + 1) * head_dim));
    }
  }
}

void RunKvWrite(const ReferenceCall& call) { WriteRows(call, false); }
void RunRopeKvWrite(const ReferenceCall& call) { WriteRows(call, true); }

constexpr OperandSchema kRopeOperands[] = {
    RowsOperand("x"), IndexOperand("positions", IndexKind::kPosition, 0),
    Optional(WeightOperand("factors"))};
constexpr OperandSchema kWriteOperands[] = {
    StateOperand("state", ""), RowsOperand("x"),
    IndexOperand("positions", IndexKind::kPosition, 1),
    IndexOperand("sequence", IndexKind::kSequence, 1)};
constexpr OperandSchema kRopeWriteOperands[] = {
    kWriteOperands[0], kWriteOperands[1], kWriteOperands[2], kWriteOperands[3],
    Optional(WeightOperand("factors"))};

constexpr const char* kRopeStyles[] = {"interleaved", "halves"};
constexpr AttributeSchema kRopeAttributes[] = {
    Field<&RopeAttributes::head_dim>("head_dim", "columns of a head")
        .From(1, kMaxHeadDim),
    Field<&RopeAttributes::rope_dims>(
        "rope_dims", "columns of a head that are rotated, an even number")
        .From(2, kMaxHeadDim),
    Field<&RopeAttributes::base>("base", "of the frequencies").Above(0),
    Field<&RopeAttributes::scale>("scale", "of positions").Above(0),
    Field<&RopeAttributes::style>(
        "style", "pairs are neighbours, or half of rope_dims apart")
        .OneOf(kRopeStyles),
    Field<&RopeAttributes::magnitude>("magnitude", "of sines and cosines")
        .Optional()
        .Above(0),
    Field<&RopeAttributes::ramp_begin>(
        "ramp_begin", "pairs up to it are not scaled, with ramp_end above 0")
        .Optional()
        .AtLeast(0),
    Field<&RopeAttributes::ramp_end>("ramp_end", "pairs from it on are scaled")
        .Optional()
        .AtLeast(0)};

constexpr OpDef Rope() {
  OpDef op;
  op.name = "rope";
  op.meaning =
      "x with pairs of columns rotated by position * base^(-2i/rope_dims) / "
      "factors[i] (f32[rope_dims/2])";
  op.operands = kRopeOperands;
  op.attributes = kRopeAttributes;
  op.primitive = true;
  op.in_place_operand = FirstOperand;
  op.infer = InferRope;
  op.reference = RunRope;
  return op;
}

constexpr OpDef KvWrite() {
  OpDef op;
  op.name = "kv_write";
  op.meaning = "the state with x f32[T,H*D] at the rows' positions";
  op.operands = kWriteOperands;
  op.primitive = true;
  op.writes_state = true;
  op.infer = InferKvWrite;
  op.reference = RunKvWrite;
  return op;
}

constexpr OpDef RopeKvWrite() {
  OpDef op = KvWrite();
  op.name = "rope_kv_write";
  op.meaning = "the state with x, rotated, at the rows' positions";
  op.operands = kRopeWriteOperands;
  op.attributes = kRopeAttributes;
  op.primitive = false;
  op.made_of = "rope, kv_write";
  op.infer = InferRopeKvWrite;
  op.reference = RunRopeKvWrite;
  return op;
}

}  // namespace

absl::Span<const AttributeSchema> RopeAttributes::Schema() {
  return kRopeAttributes;
}

constexpr OpDef kRopeOp = Rope();
constexpr OpDef kKvWriteOp = KvWrite();
constexpr OpDef kRopeKvWriteOp = RopeKvWrite();

}  // namespace weft
