// rms_norm and layer_norm, and the two with their result rounded:
// rms_norm_quantize and layer_norm_quantize; rms_norm_gate, of recurrent
// blocks.
#include "ops/norm.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

// x, and `vectors` more: perhaps a weight and a bias. A row may be several
// heads, side by side.
absl::Status CheckNorm(const Graph& graph, const Node& node, int64_t heads,
                       size_t vectors) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  const Shape& shape = OperandType(graph, node, 0).shape;
  // Kernels take all but the first dimension for the columns.
  if (shape.rank() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op->name, " wants a matrix [M,N], found ", shape.ToString()));
  }
  Dim columns = shape[1];
  if (heads > 1) {
    if (columns.symbol != Dim::kNumber || columns.value % heads != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(node.op->name, ": ", shape.ToString(),
                       " does not divide into ", heads, " heads"));
    }
    // One weight for all heads, or each its own.
    if (vectors > 0 && OperandType(graph, node, 1).shape != Shape{columns}) {
      columns.value /= heads;
    }
  }
  for (size_t i = 1; i <= vectors; ++i) {
    WEFT_RETURN_IF_ERROR(WantVector(graph, node, static_cast<int>(i), columns));
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> InferNorm(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(CheckNorm(graph, node,
                                 node.attributes.As<NormAttributes>().heads,
                                 node.inputs.size() - 1));
  return Types{FloatType(OperandType(graph, node, 0).shape)};
}

absl::StatusOr<Types> InferNormQuantize(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(CheckNorm(graph, node, 1, node.inputs.size() - 1));
  return Types{{DType::kQ8Rows, OperandType(graph, node, 0).shape, ""}};
}

absl::StatusOr<Types> InferNormGate(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(
      CheckNorm(graph, node, node.attributes.As<NormAttributes>().heads, 1));
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 2));
  const Shape& shape = OperandType(graph, node, 0).shape;
  const Shape& gate = OperandType(graph, node, 2).shape;
  if (gate != shape) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.op->name, ": the gate is ", gate.ToString(),
                     ", want ", shape.ToString()));
  }
  return Types{FloatType(shape)};
}

using Row = std::vector<double>;

// Normalises each head of each row by `norm`(head, weight, bias).
template <typename Norm>
void ForEachHead(const ReferenceCall& call, Norm norm) {
  const int64_t heads = NormAttributesOf(call.node.attributes).heads;
  Row weight(call.inputs[0].columns / heads, 1);
  if (call.node.inputs.size() > 1) weight = ReadRow(call, 1, 0);
  Row bias(weight.size());
  const bool gated = call.node.Is(kRmsNormGateOp);
  if (call.node.inputs.size() > 2 && !gated) bias = ReadRow(call, 2, 0);
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    Row x = ReadRow(call, 0, r);
    const int64_t columns = static_cast<int64_t>(x.size()) / heads;
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t begin = head * columns;
      // Each head has its own weights, or all have the same.
      const int64_t at =
          static_cast<int64_t>(weight.size()) > columns ? begin : 0;
      const auto part = [columns](const Row& all, int64_t from) {
        return Row(all.begin() + from, all.begin() + from + columns);
      };
      const Row y = norm(part(x, begin), part(weight, at), part(bias, at));
      std::copy(y.begin(), y.end(), x.begin() + begin);
    }
    if (gated) {
      const Row gate = ReadRow(call, 2, r);
      for (size_t k = 0; k < x.size(); ++k) {
        x[k] *= gate[k] / (1 + std::exp(-gate[k]));
      }
    }
    WriteRow(call, 0, r, x);
  }
}

void RunRmsNorm(const ReferenceCall& call) {
  const double eps = NormAttributesOf(call.node.attributes).eps;
  ForEachHead(call, [eps](const Row& x, const Row& weight, const Row&) {
    return RmsNormRow(x, weight, eps);
  });
}

void RunL2Norm(const ReferenceCall& call) {
  const auto [eps, heads] = call.attributes<NormAttributes>();
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    Row x = ReadRow(call, 0, r);
    const size_t columns = x.size() / heads;
    for (size_t begin = 0; begin < x.size(); begin += columns) {
      double sum = 0;
      for (size_t k = begin; k < begin + columns; ++k) sum += x[k] * x[k];
      const double length = std::fmax(std::sqrt(sum), eps);
      for (size_t k = begin; k < begin + columns; ++k) x[k] /= length;
    }
    WriteRow(call, 0, r, x);
  }
}

void RunLayerNorm(const ReferenceCall& call) {
  const double eps = NormAttributesOf(call.node.attributes).eps;
  ForEachHead(call, [eps](const Row& x, const Row& weight, const Row& bias) {
    return LayerNormRow(x, weight, bias, eps);
  });
}

int64_t NormOperations(const Graph& graph, const Node& node,
                       const Bounds& bounds) {
  return 4 * OperandType(graph, node, 0).shape.Elements(bounds);
}

constexpr OperandSchema kRmsNormOperands[] = {
    RowsOperand("x"), Optional(WeightOperand("weight"))};
constexpr OperandSchema kRmsNormQuantizeOperands[] = {RowsOperand("x"),
                                                      WeightOperand("weight")};
constexpr OperandSchema kRmsNormGateOperands[] = {
    RowsOperand("x"), WeightOperand("weight"), RowsOperand("gate")};
constexpr OperandSchema kL2NormOperands[] = {RowsOperand("x")};
constexpr OperandSchema kLayerNormOperands[] = {
    RowsOperand("x"), WeightOperand("weight"), Optional(WeightOperand("bias"))};

constexpr AttributeSchema kNormAttributes[] = {
    Field<&NormAttributes::eps>("eps", "added to the mean of squares")
        .AtLeast(0),
    Field<&NormAttributes::heads>(
        "heads",
        "equal parts of a row, each normalised by itself; weights are "
        "of one of them or of all")
        .Optional()
        .From(1, 1 << 16)};
constexpr AttributeSchema kNormQuantizeAttributes[] = {
    Field<&NormQuantizeAttributes::eps>("eps", "added to the mean of squares")
        .AtLeast(0)};

constexpr OpDef Norm(const char* name, const char* meaning,
                     absl::Span<const OperandSchema> operands,
                     void (*reference)(const ReferenceCall&)) {
  OpDef op;
  op.name = name;
  op.meaning = meaning;
  op.operands = operands;
  op.attributes = kNormAttributes;
  op.primitive = true;
  op.in_place_operand = FirstOperand;
  op.infer = InferNorm;
  op.reference = reference;
  op.operations = NormOperations;
  return op;
}

constexpr OpDef Rounded(OpDef op, const char* name,
                        absl::Span<const OperandSchema> operands,
                        const char* made_of) {
  op.name = name;
  op.meaning = "q8r[M,K]: the norm, rounded";
  op.operands = operands;
  op.made_of = made_of;
  op.attributes = kNormQuantizeAttributes;
  op.primitive = false;
  op.in_place_operand = nullptr;
  op.infer = InferNormQuantize;
  return op;
}

constexpr OpDef Gated(OpDef op) {
  op.name = "rms_norm_gate";
  op.meaning = "the norm, times gate / (1 + e^-gate)";
  op.operands = kRmsNormGateOperands;
  op.made_of = "rms_norm, silu, mul";
  op.primitive = false;
  op.infer = InferNormGate;
  return op;
}

}  // namespace

NormAttributes NormAttributesOf(const Attributes& attributes) {
  if (attributes.Are<NormAttributes>()) return attributes.As<NormAttributes>();
  return {attributes.As<NormQuantizeAttributes>().eps, 1};
}

absl::Span<const AttributeSchema> NormAttributes::Schema() {
  return kNormAttributes;
}
absl::Span<const AttributeSchema> NormQuantizeAttributes::Schema() {
  return kNormQuantizeAttributes;
}

constexpr OpDef kRmsNormOp =
    Norm("rms_norm", "x / sqrt(mean(x^2) + eps) * weight (none: 1)",
         kRmsNormOperands, RunRmsNorm);
constexpr OpDef kLayerNormOp = Norm(
    "layer_norm", "(x - mean(x)) / sqrt(variance(x) + eps) * weight + bias",
    kLayerNormOperands, RunLayerNorm);
constexpr OpDef kL2NormOp =
    Norm("l2_norm", "x / max(|x|, eps)", kL2NormOperands, RunL2Norm);
constexpr OpDef kRmsNormQuantizeOp =
    Rounded(kRmsNormOp, "rms_norm_quantize", kRmsNormQuantizeOperands,
            "rms_norm, quantize_rows");
constexpr OpDef kRmsNormGateOp = Gated(kRmsNormOp);
constexpr OpDef kLayerNormQuantizeOp =
    Rounded(kLayerNormOp, "layer_norm_quantize", kLayerNormOperands,
            "layer_norm, quantize_rows");

}  // namespace weft
