// add, mul, scale, softcap, silu, sigmoid, gelu and the gates silu_gate and
// gelu_gate: one result element from the same place of each operand.
// quantize_rows: the same rows, rounded for integer kernels.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

absl::StatusOr<Types> InferUnary(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 1, 1));
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  return Types{FloatType(OperandType(graph, node, 0).shape)};
}

absl::StatusOr<Types> InferGelu(const Graph& graph, const Node& node) {
  const std::string kind = node.attributes.String("approximation");
  if (kind != "none" && kind != "tanh") {
    return absl::InvalidArgumentError(
        "gelu attribute approximation: want \"none\" or \"tanh\"");
  }
  return InferUnary(graph, node);
}

absl::StatusOr<Types> InferScale(const Graph& graph, const Node& node) {
  absl::StatusOr<Types> types = InferUnary(graph, node);
  if (!types.ok()) return types;
  WEFT_RETURN_IF_ERROR(
      WantFloat(node, "factor", -std::numeric_limits<double>::max()));
  return types;
}

absl::StatusOr<Types> InferSoftcap(const Graph& graph, const Node& node) {
  absl::StatusOr<Types> types = InferUnary(graph, node);
  if (!types.ok()) return types;
  WEFT_RETURN_IF_ERROR(WantFloat(node, "cap", 0));
  return types;
}

absl::StatusOr<Types> InferBinary(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 2, 2));
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  const ValueType& a = OperandType(graph, node, 0);
  const ValueType& b = OperandType(graph, node, 1);
  const Dim columns = a.shape[a.shape.rank() - 1];
  // Kernels take all but the first dimension for the columns.
  const bool gate = node.op == "silu_gate" || node.op == "gelu_gate";
  const bool repeats =
      !gate && a.shape.rank() == 2 && b.shape == Shape{columns};
  if (b.dtype != DType::kF32 || !b.layout.empty() ||
      (b.shape != a.shape && !repeats)) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op, " cannot join ", a.ToString(), " and ", b.ToString()));
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
void RunGelu(const ReferenceCall& call) {
  const bool tanh = call.node.attributes.String("approximation") == "tanh";
  ForEachRow(call,
             [tanh](double a, double) { return tanh ? GeluTanh(a) : Gelu(a); });
}
void RunScale(const ReferenceCall& call) {
  const double factor = call.node.attributes.Float("factor");
  ForEachRow(call, [factor](double a, double) { return a * factor; });
}
void RunSoftcap(const ReferenceCall& call) {
  const double cap = call.node.attributes.Float("cap");
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

absl::StatusOr<Types> InferQuantizeRows(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 1, 1));
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  return Types{{DType::kQ8Rows, OperandType(graph, node, 0).shape, ""}};
}

void RunQuantizeRows(const ReferenceCall& call) {
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    WriteRow(call, 0, r, ReadRow(call, 0, r));
  }
}

}  // namespace

const OpDef kAddOp = {"add", true,        false,  FirstOperand,
                      false, InferBinary, RunAdd, nullptr};
const OpDef kMulOp = {"mul", true,        false,  FirstOperand,
                      false, InferBinary, RunMul, nullptr};
const OpDef kSiluOp = {"silu", true,       false,   FirstOperand,
                       false,  InferUnary, RunSilu, nullptr};
const OpDef kSigmoidOp = {"sigmoid", true,       false,      FirstOperand,
                          false,     InferUnary, RunSigmoid, nullptr};
const OpDef kGeluOp = {"gelu", true,      false,   FirstOperand,
                       false,  InferGelu, RunGelu, nullptr};
const OpDef kScaleOp = {"scale", true,       false,    FirstOperand,
                        false,   InferScale, RunScale, nullptr};
const OpDef kSoftcapOp = {"softcap", true,         false,      FirstOperand,
                          false,     InferSoftcap, RunSoftcap, nullptr};
const OpDef kGeluGateOp = {"gelu_gate", false,       false,       FirstOperand,
                           false,       InferBinary, RunGeluGate, nullptr};
const OpDef kSiluGateOp = {"silu_gate", false,       false,       FirstOperand,
                           false,       InferBinary, RunSiluGate, nullptr};
const OpDef kQuantizeRowsOp = {"quantize_rows", false,  false,
                               nullptr,         false,  InferQuantizeRows,
                               RunQuantizeRows, nullptr};

}  // namespace weft
