// Ops by element: add, mul, scale, softcap, silu, sigmoid, gelu, relu, softplus,
// and the gates clamped_gate, silu_gate and gelu_gate: one result element from
// the same place of each operand. quantize_rows: the same rows, rounded for
// integer kernels.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

constexpr OperandSchema kUnary[] = {RowsOperand("x")};
constexpr OperandSchema kBinary[] = {RowsOperand("a"), RowsOperand("b")};

constexpr AttributeSchema kScaleAttributes[] = {
    Field<&ScaleAttributes::factor>("factor", "what each element is times")};
constexpr AttributeSchema kSoftcapAttributes[] = {
    Field<&SoftcapAttributes::cap>("cap", "what no result goes beyond")
        .Above(0)};
constexpr const char* kGeluApproximations[] = {"none", "tanh"};
constexpr AttributeSchema kGeluAttributes[] = {
    Field<&GeluAttributes::approximation>("approximation",
                                          "how the normal distribution is")
        .OneOf(kGeluApproximations)};

constexpr AttributeSchema kClampedGateAttributes[] = {
    Field<&ClampedGateAttributes::limit>("limit", "of both operands").Above(0),
    Field<&ClampedGateAttributes::slope>("slope", "of a in the sigmoid")
        .Above(0)};

absl::StatusOr<Types> InferUnary(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  return Types{FloatType(OperandType(graph, node, 0).shape)};
}

absl::StatusOr<Types> InferBinary(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  const ValueType& a = OperandType(graph, node, 0);
  const ValueType& b = OperandType(graph, node, 1);
  const Dim columns = a.shape[a.shape.rank() - 1];
  // Kernels take all but the first dimension for the columns.
  const bool gate =
      node.Is(kSiluGateOp) || node.Is(kGeluGateOp) || node.Is(kClampedGateOp);
  const bool repeats =
      !gate && a.shape.rank() == 2 && b.shape == Shape{columns};
  if (b.dtype != DType::kF32 || !b.layout.empty() ||
      (b.shape != a.shape && !repeats)) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op->name, " cannot join ", a.ToString(), " and ", b.ToString()));
  }
  return Types{FloatType(a.shape)};
}

template <typename F>
void ForEachRow(const ReferenceCall& call, F f) {
  const bool binary = call.node.inputs.size() > 1;
  const bool repeats = binary && call.input_type(1).shape.rank() <
                                     call.input_type(0).shape.rank();
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    std::vector<double> a = ReadRow(call, 0, r);
    std::vector<double> b;
    if (binary) b = ReadRow(call, 1, repeats ? 0 : r);
    for (size_t k = 0; k < a.size(); ++k) a[k] = f(a[k], binary ? b[k] : 0.0);
    WriteRow(call, 0, r, a);
  }
}

void RunAdd(const ReferenceCall& call) {
  ForEachRow(call, [](double a, double b) { return a + b; });
}
void RunMul(const ReferenceCall& call) {
  ForEachRow(call, [](double a, double b) { return a * b; });
}
void RunSilu(const ReferenceCall& call) {
  ForEachRow(call, [](double a, double) { return Silu(a); });
}
void RunSigmoid(const ReferenceCall& call) {
  ForEachRow(call, [](double a, double) { return 1.0 / (1.0 + std::exp(-a)); });
}
void RunRelu(const ReferenceCall& call) {
  ForEachRow(call, [](double a, double) { return a < 0 ? 0.0 : a; });
}
void RunSoftplus(const ReferenceCall& call) {
  ForEachRow(call, [](double a, double) {
    return std::fmax(a, 0.0) + std::log1p(std::exp(-std::fabs(a)));
  });
}
void RunGelu(const ReferenceCall& call) {
  const bool tanh = call.attributes<GeluAttributes>().approximation ==
                    GeluApproximation::kTanh;
  ForEachRow(call,
             [tanh](double a, double) { return tanh ? GeluTanh(a) : Gelu(a); });
}
void RunScale(const ReferenceCall& call) {
  const double factor = call.attributes<ScaleAttributes>().factor;
  ForEachRow(call, [factor](double a, double) { return a * factor; });
}
void RunSoftcap(const ReferenceCall& call) {
  const double cap = call.attributes<SoftcapAttributes>().cap;
  ForEachRow(call,
             [cap](double a, double) { return cap * std::tanh(a / cap); });
}
void RunGeluGate(const ReferenceCall& call) {
  ForEachRow(call,
             [](double a, double b) { return RoundToFloat(GeluTanh(a)) * b; });
}
void RunSiluGate(const ReferenceCall& call) {
  ForEachRow(call,
             [](double a, double b) { return RoundToFloat(Silu(a)) * b; });
}

void RunClampedGate(const ReferenceCall& call) {
  const auto clamp = call.attributes<ClampedGateAttributes>();
  ForEachRow(call, [clamp](double a, double b) {
    return ClampedGate(a, b, clamp.limit, clamp.slope);
  });
}

absl::StatusOr<Types> InferQuantizeRows(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  return Types{{DType::kQ8Rows, OperandType(graph, node, 0).shape, ""}};
}

void RunQuantizeRows(const ReferenceCall& call) {
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    WriteRow(call, 0, r, ReadRow(call, 0, r));
  }
}

constexpr OpDef Unary(const char* name, const char* meaning,
                      void (*reference)(const ReferenceCall&),
                      absl::Span<const AttributeSchema> attributes = {}) {
  OpDef op;
  op.name = name;
  op.meaning = meaning;
  op.operands = kUnary;
  op.attributes = attributes;
  op.primitive = true;
  op.in_place_operand = FirstOperand;
  op.infer = InferUnary;
  op.reference = reference;
  return op;
}

constexpr OpDef Binary(const char* name, const char* meaning,
                       void (*reference)(const ReferenceCall&)) {
  OpDef op = Unary(name, meaning, reference);
  op.operands = kBinary;
  op.infer = InferBinary;
  return op;
}

constexpr OpDef Gate(const char* name, const char* meaning, const char* made_of,
                     void (*reference)(const ReferenceCall&)) {
  OpDef op = Binary(name, meaning, reference);
  op.primitive = false;
  op.made_of = made_of;
  return op;
}

constexpr OpDef ClampedGateRecord() {
  OpDef op = Binary("clamped_gate",
                    "g / (1 + e^(-slope g)) (u + 1), g = min(a, limit), u = b "
                    "from -limit to limit",
                    RunClampedGate);
  op.attributes = kClampedGateAttributes;
  return op;
}

constexpr OpDef QuantizeRows() {
  OpDef op;
  op.name = "quantize_rows";
  op.meaning =
      "q8r[M,K]: blocks of 32 int8 with a scale and two sums, for products "
      "with quantised weights";
  op.operands = kUnary;
  op.made_of = "the rounding of an operand of matmul";
  op.infer = InferQuantizeRows;
  op.reference = RunQuantizeRows;
  return op;
}

}  // namespace

absl::Span<const AttributeSchema> ScaleAttributes::Schema() {
  return kScaleAttributes;
}
absl::Span<const AttributeSchema> SoftcapAttributes::Schema() {
  return kSoftcapAttributes;
}
absl::Span<const AttributeSchema> GeluAttributes::Schema() {
  return kGeluAttributes;
}
absl::Span<const AttributeSchema> ClampedGateAttributes::Schema() {
  return kClampedGateAttributes;
}

constexpr OpDef kAddOp =
    Binary("add", "a + b; b is like a, or f32[N] for each row", RunAdd);
constexpr OpDef kMulOp =
    Binary("mul", "a * b; b is like a, or f32[N] for each row", RunMul);
constexpr OpDef kSiluOp = Unary("silu", "x / (1 + e^-x)", RunSilu);
constexpr OpDef kSigmoidOp = Unary("sigmoid", "1 / (1 + e^-x)", RunSigmoid);
constexpr OpDef kReluOp = Unary("relu", "x, but 0 where x is below", RunRelu);
constexpr OpDef kSoftplusOp = Unary("softplus", "ln(1 + e^x)", RunSoftplus);
constexpr OpDef kGeluOp = Unary("gelu", "x Phi(x), Phi the normal distribution",
                                RunGelu, kGeluAttributes);
constexpr OpDef kScaleOp =
    Unary("scale", "x * factor", RunScale, kScaleAttributes);
constexpr OpDef kSoftcapOp =
    Unary("softcap", "cap * tanh(x / cap)", RunSoftcap, kSoftcapAttributes);
constexpr OpDef kGeluGateOp =
    Gate("gelu_gate", "gelu(a) * b, gelu by tanh", "gelu, mul", RunGeluGate);
constexpr OpDef kSiluGateOp =
    Gate("silu_gate", "silu(a) * b", "silu, mul", RunSiluGate);
constexpr OpDef kClampedGateOp = ClampedGateRecord();
constexpr OpDef kQuantizeRowsOp = QuantizeRows();

}  // namespace weft
