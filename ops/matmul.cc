// matmul and fused_matmul.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ops/fused_matmul.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

constexpr struct {
  const char* name;
  MatmulEpilogue epilogue;
  GateActivation activation = GateActivation::kSilu;
} kEpilogues[] = {
    {"", MatmulEpilogue::kStore},
    {"residual", MatmulEpilogue::kResidual},
    {"silu_gate", MatmulEpilogue::kGate},
    {"silu_gate_quantize", MatmulEpilogue::kGateQuantize},
    {"gelu_gate", MatmulEpilogue::kGate, GateActivation::kGeluTanh},
    {"gelu_gate_quantize", MatmulEpilogue::kGateQuantize,
     GateActivation::kGeluTanh},
};

// Kernels read the parts of a plain product too: it must have none.
absl::Status WantPlain(const Node& node) {
  const MatmulParts parts = PartsOf(node);
  if (parts.norm < 0 && parts.norm_bias < 0 && parts.bias < 0 &&
      parts.residual < 0 && !parts.quantize &&
      parts.epilogue == MatmulEpilogue::kStore) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "matmul has attributes of fused_matmul: it takes none");
}

absl::StatusOr<Types> InferMatmul(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 2, 2));
  if (node.op == kMatmulOp.name) WEFT_RETURN_IF_ERROR(WantPlain(node));
  const ValueType& x = OperandType(graph, node, 0);
  const ValueType& weight = OperandType(graph, node, 1);
  WEFT_RETURN_IF_ERROR(WantWhole(graph, node, 1));
  if (weight.shape.rank() != 2 || weight.shape[0].symbol != Dim::kNumber ||
      weight.shape[1].symbol != Dim::kNumber ||
      FindWeightLayout(weight.layout) == nullptr ||
      weight.dtype == DType::kI32 || weight.dtype == DType::kQ8Rows) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op, " wants a weight [N,K], found ", weight.ToString()));
  }
  const bool quantized = x.dtype == DType::kQ8Rows;
  if (x.shape.rank() != 2 || !x.layout.empty() ||
      (x.dtype != DType::kF32 && !quantized) || x.shape[1] != weight.shape[1] ||
      (quantized && !Info(weight.dtype).quantized)) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op, " cannot multiply ", x.ToString(), " by ", weight.ToString()));
  }
  return Types{FloatType({x.shape[0], weight.shape[0]})};
}

absl::StatusOr<Types> InferFusedMatmul(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 2, 6));
  const std::string epilogue = node.attributes.String("epilogue");
  bool known = false;
  for (const auto& row : kEpilogues) known |= epilogue == row.name;
  if (!known) {
    return absl::InvalidArgumentError(
        absl::StrCat("fused_matmul has no epilogue '", epilogue, "'"));
  }
  const MatmulParts parts = PartsOf(node);
  const size_t operands = 2 + (parts.norm >= 0) + (parts.norm_bias >= 0) +
                          (parts.bias >= 0) + (parts.residual >= 0);
  if (node.inputs.size() != operands) {
    return absl::InvalidArgumentError(
        absl::StrCat("fused_matmul has ", node.inputs.size(),
                     " operands, its attributes ask for ", operands));
  }
  Node product = node;
  product.inputs.resize(2);
  absl::StatusOr<Types> types = InferMatmul(graph, product);
  if (!types.ok()) return types;
  const ValueType& x = OperandType(graph, node, 0);
  const ValueType& weight = OperandType(graph, node, 1);
  if (parts.norm >= 0) {
    WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
    WEFT_RETURN_IF_ERROR(WantFloat(node, "eps", -1e-30));
    WEFT_RETURN_IF_ERROR(WantVector(graph, node, parts.norm, x.shape[1]));
    const std::string norm = node.attributes.String("norm");
    if (!norm.empty() && norm != "layer") {
      return absl::InvalidArgumentError(
          absl::StrCat("fused_matmul has no norm '", norm, "'"));
    }
  }
  if (parts.norm_bias >= 0) {
    if (parts.norm < 0 || !parts.layer_norm) {
      return absl::InvalidArgumentError(
          "fused_matmul norm_bias=1 needs a layer norm");
    }
    WEFT_RETURN_IF_ERROR(WantVector(graph, node, parts.norm_bias, x.shape[1]));
  }
  if (parts.quantize && (parts.norm < 0 || !Info(weight.dtype).quantized)) {
    return absl::InvalidArgumentError(
        "fused_matmul quantize=1 needs a norm and a quantised weight");
  }
  Shape& shape = (*types)[0].shape;
  if (parts.bias >= 0) {
    WEFT_RETURN_IF_ERROR(WantVector(graph, node, parts.bias, shape[1]));
  }
  if (parts.residual >= 0) {
    const ValueType& residual = OperandType(graph, node, parts.residual);
    if (!(residual == (*types)[0])) {
      return absl::InvalidArgumentError(
          absl::StrCat("fused_matmul residual is ", residual.ToString(),
                       ", want ", (*types)[0].ToString()));
    }
  }
  if (parts.epilogue == MatmulEpilogue::kGate ||
      parts.epilogue == MatmulEpilogue::kGateQuantize) {
    const int64_t rows = weight.shape[0].value;
    const bool quantizes = parts.epilogue == MatmulEpilogue::kGateQuantize;
    if (weight.shape[0].symbol != Dim::kNumber ||
        rows % (quantizes ? 64 : 32) != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "fused_matmul gate needs whole panels of gate and up rows, found ",
          rows, " rows"));
    }
    shape = Shape{shape[0], Dim::Number(rows / 2)};
    if (quantizes) (*types)[0].dtype = DType::kQ8Rows;
  }
  return types;
}

void RunFusedMatmul(const ReferenceCall& call) {
  const MatmulParts parts = PartsOf(call.node);
  const int64_t rows = call.outputs[0].rows;
  const int64_t outputs = call.inputs[1].rows;
  std::vector<std::vector<double>> x(rows), y(rows);
  std::vector<double> norm, norm_bias(call.inputs[0].columns);
  if (parts.norm >= 0) norm = ReadRow(call, parts.norm, 0);
  if (parts.norm_bias >= 0) norm_bias = ReadRow(call, parts.norm_bias, 0);
  for (int64_t r = 0; r < rows; ++r) {
    x[r] = ReadRow(call, 0, r);
    if (parts.norm >= 0) {
      x[r] = parts.layer_norm ? LayerNormRow(x[r], norm, norm_bias, parts.eps)
                              : RmsNormRow(x[r], norm, parts.eps);
      RoundToFloats(&x[r]);
    }
    if (parts.quantize) x[r] = RoundToQuantized(x[r]);
    y[r].resize(outputs);
  }
  std::vector<double> bias;
  if (parts.bias >= 0) bias = ReadRow(call, parts.bias, 0);
  for (int64_t n = 0; n < outputs; ++n) {
    const std::vector<double> weight = ReadRow(call, 1, n);
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (size_t k = 0; k < weight.size(); ++k) sum += x[r][k] * weight[k];
      y[r][n] = RoundToFloat(sum);
      if (!bias.empty()) y[r][n] = RoundToFloat(y[r][n] + bias[n]);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<double>& row = y[r];
    if (parts.epilogue == MatmulEpilogue::kResidual) {
      const std::vector<double> residual = ReadRow(call, parts.residual, r);
      for (int64_t n = 0; n < outputs; ++n) row[n] += residual[n];
    } else if (parts.epilogue != MatmulEpilogue::kStore) {
      std::vector<double> gated(outputs / 2);
      for (int64_t n = 0; n < outputs / 2; ++n) {
        const int64_t gate = n / kPanelRows * 2 * kPanelRows + n % kPanelRows;
        const double active = parts.activation == GateActivation::kSilu
                                  ? Silu(row[gate])
                                  : GeluTanh(row[gate]);
        gated[n] = RoundToFloat(active) * row[gate + kPanelRows];
      }
      row = std::move(gated);
    }
    WriteRow(call, 0, r, row);
  }
}

int ResidualOperand(const Node& node) { return PartsOf(node).residual; }

bool RoundsInside(const Node& node) { return PartsOf(node).quantize; }

int64_t MatmulOperations(const Graph& graph, const Node& node,
                         const Bounds& bounds) {
  const Shape& x = OperandType(graph, node, 0).shape;
  const Shape& weight = OperandType(graph, node, 1).shape;
  return 2 * x.Elements(bounds) * weight[0].Resolve(bounds);
}

}  // namespace

bool IsMatmul(const Node& node) {
  return node.op == kMatmulOp.name || node.op == kFusedMatmulOp.name;
}

MatmulParts PartsOf(const Node& node) {
  MatmulParts parts;
  parts.x = node.inputs[0];
  parts.weight = node.inputs[1];
  int next = 2;
  if (node.attributes.Has("eps")) parts.norm = next++;
  if (node.attributes.Int("norm_bias") != 0) parts.norm_bias = next++;
  parts.layer_norm = node.attributes.String("norm") == "layer";
  if (node.attributes.Int("bias") != 0) parts.bias = next++;
  parts.eps = node.attributes.Float("eps");
  parts.quantize = node.attributes.Int("quantize") != 0;
  const std::string epilogue = node.attributes.String("epilogue");
  for (const auto& row : kEpilogues) {
    if (epilogue != row.name) continue;
    parts.epilogue = row.epilogue;
    parts.activation = row.activation;
  }
  if (parts.epilogue == MatmulEpilogue::kResidual) parts.residual = next++;
  return parts;
}

MatmulOperands OperandsOf(const Node& node) {
  const MatmulParts parts = PartsOf(node);
  const auto at = [&node](int operand) {
    return operand < 0 ? kNone : node.inputs[operand];
  };
  return {at(parts.norm), at(parts.norm_bias), at(parts.bias),
          at(parts.residual)};
}

void SetParts(const MatmulParts& parts, const MatmulOperands& operands,
              Node* node) {
  node->op = kFusedMatmulOp.name;
  node->attributes = Attributes();
  node->inputs = {parts.x, parts.weight};
  const auto add = [node](ValueId operand) {
    if (operand != kNone) node->inputs.push_back(operand);
    return operand != kNone;
  };
  if (add(operands.norm)) {
    node->attributes.Set("eps", parts.eps);
    if (parts.layer_norm) node->attributes.Set("norm", std::string("layer"));
    if (parts.quantize) node->attributes.Set("quantize", int64_t{1});
  }
  if (add(operands.norm_bias)) node->attributes.Set("norm_bias", int64_t{1});
  if (add(operands.bias)) node->attributes.Set("bias", int64_t{1});
  add(operands.residual);
  for (const auto& row : kEpilogues) {
    if (row.epilogue == parts.epilogue && row.activation == parts.activation &&
        *row.name != '\0') {
      node->attributes.Set("epilogue", std::string(row.name));
    }
  }
}

const OpDef kMatmulOp = {
    "matmul", true,        false,          nullptr,
    false,    InferMatmul, RunFusedMatmul, MatmulOperations};
// The last operand may be the residual; which one is known from the node, so
// sharing its memory is the business of passes/lifetimes.
const OpDef kFusedMatmulOp = {"fused_matmul",
                              false,
                              false,
                              ResidualOperand,
                              false,
                              InferFusedMatmul,
                              RunFusedMatmul,
                              MatmulOperations,
                              {},
                              RoundsInside};

}  // namespace weft
