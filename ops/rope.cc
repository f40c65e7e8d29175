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
  WEFT_RETURN_IF_ERROR(WantInt(node, "head_dim", 1, kMaxHeadDim));
  const int64_t head_dim = node.attributes.Int("head_dim");
  WEFT_RETURN_IF_ERROR(WantInt(node, "rope_dims", 2, head_dim));
  const int64_t rope_dims = node.attributes.Int("rope_dims");
  if (shape.rank() != 2 || shape[1].symbol != Dim::kNumber ||
      shape[1].value % head_dim != 0 || rope_dims % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op, ": ", shape.ToString(), " does not divide into heads of ",
        head_dim, " with ", rope_dims, " rotated"));
  }
  WEFT_RETURN_IF_ERROR(WantFloat(node, "base", 0));
  WEFT_RETURN_IF_ERROR(WantFloat(node, "scale", 0));
  if (node.attributes.Has("magnitude")) {
    WEFT_RETURN_IF_ERROR(WantFloat(node, "magnitude", 0));
  }
  if (node.attributes.Has("ramp_begin") || node.attributes.Has("ramp_end")) {
    WEFT_RETURN_IF_ERROR(WantFloat(node, "ramp_begin", -1e-30));
    WEFT_RETURN_IF_ERROR(
        WantFloat(node, "ramp_end", node.attributes.Float("ramp_begin")));
  }
  const std::string style = node.attributes.String("style");
  if (style != "interleaved" && style != "halves") {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op, " attribute style: want \"interleaved\" or \"halves\""));
  }
  if (static_cast<int>(node.inputs.size()) > factors) {
    WEFT_RETURN_IF_ERROR(
        WantVector(graph, node, factors, Dim::Number(rope_dims / 2)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> InferRope(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 2, 3));
  WEFT_RETURN_IF_ERROR(WantIntegers(graph, node, 1, 0));
  WEFT_RETURN_IF_ERROR(CheckRope(graph, node, 0, 2));
  return Types{FloatType(OperandType(graph, node, 0).shape)};
}

absl::Status CheckKvWrite(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantState(graph, node, 0, ""));
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 1));
  WEFT_RETURN_IF_ERROR(WantIntegers(graph, node, 2, 1));
  WEFT_RETURN_IF_ERROR(WantIntegers(graph, node, 3, 1));
  const ValueType& state = OperandType(graph, node, 0);
  const Shape& x = OperandType(graph, node, 1).shape;
  if (x.rank() != 2 ||
      x[1].value != state.shape[1].value * state.shape[2].value) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op, " cannot write ", x.ToString(), " into ", state.ToString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> InferKvWrite(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 4, 4));
  WEFT_RETURN_IF_ERROR(CheckKvWrite(graph, node));
  return Types{OperandType(graph, node, 0)};
}

absl::StatusOr<Types> InferRopeKvWrite(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 4, 5));
  WEFT_RETURN_IF_ERROR(CheckKvWrite(graph, node));
  WEFT_RETURN_IF_ERROR(CheckRope(graph, node, 1, 4));
  if (OperandType(graph, node, 0).shape[2].value !=
      node.attributes.Int("head_dim")) {
    return absl::InvalidArgumentError("rope_kv_write: head sizes differ");
  }
  return Types{OperandType(graph, node, 0)};
}

void RotateRow(const Node& node, double position,
               const std::vector<double>& factors, std::vector<double>* row) {
  const int64_t head_dim = node.attributes.Int("head_dim");
  const int64_t rope_dims = node.attributes.Int("rope_dims");
  const double base = node.attributes.Float("base");
  const double scale = node.attributes.Float("scale");
  const double magnitude = node.attributes.Float("magnitude", 1);
  const double ramp_begin = node.attributes.Float("ramp_begin");
  const double ramp_end = node.attributes.Float("ramp_end");
  const bool halves = node.attributes.String("style") == "halves";
  for (size_t head = 0; head < row->size(); head += head_dim) {
    for (int64_t i = 0; i < rope_dims / 2; ++i) {
      double frequency = std::pow(base, -2.0 * i / rope_dims);
      if (!factors.empty()) frequency /= factors[i];
      double scaled = 1;  // how far towards `scale`
      if (ramp_end > 0) {
        scaled = (i - ramp_begin) / (ramp_end - ramp_begin);
        scaled = std::fmin(1, std::fmax(0, scaled));
      }
      const double angle = position * (1 + (scale - 1) * scaled) * frequency;
      double& a = (*row)[head + (halves ? i : 2 * i)];
      double& b = (*row)[head + (halves ? i + rope_dims / 2 : 2 * i + 1)];
      const double cosine = magnitude * std::cos(angle);
      const double sine = magnitude * std::sin(angle);
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
  const std::vector<double> factors = Factors(call, 2);
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    std::vector<double> row = ReadRow(call, 0, r);
    RotateRow(call.node, Integers(call, 1)[r], factors, &row);
    WriteRow(call, 0, r, row);
  }
}

void WriteRows(const ReferenceCall& call, bool rotate) {
  const ValueType& state = call.input_type(0);
  const std::vector<double> factors =
      rotate ? Factors(call, 4) : std::vector<double>();
  const int64_t head_dim = state.shape[2].value;
  for (int64_t r = 0; r < call.inputs[1].rows; ++r) {
    std::vector<double> row = ReadRow(call, 1, r);
    const int32_t position = Integers(call, 2)[r];
    if (rotate) RotateRow(call.node, position, factors, &row);
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

constexpr IndexOperand kRopeIndices[] = {{1, IndexKind::kPosition}};
constexpr IndexOperand kWriteIndices[] = {{2, IndexKind::kPosition},
                                          {3, IndexKind::kSequence}};

}  // namespace

const OpDef kRopeOp = {"rope",    true,    false,   FirstOperand, false,
                       InferRope, RunRope, nullptr, kRopeIndices};
const OpDef kKvWriteOp = {"kv_write",   true,       false,   nullptr,      true,
                          InferKvWrite, RunKvWrite, nullptr, kWriteIndices};
const OpDef kRopeKvWriteOp = {"rope_kv_write", false,   false,
                              nullptr,         true,    InferRopeKvWrite,
                              RunRopeKvWrite,  nullptr, kWriteIndices};

}  // namespace weft
