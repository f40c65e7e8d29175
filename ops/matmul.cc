// matmul and fused_matmul.
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "ops/fused_matmul.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

absl::StatusOr<Types> InferMatmul(const Graph& graph, const Node& node) {
  const ValueType& x = OperandType(graph, node, 0);
  const ValueType& weight = OperandType(graph, node, 1);
  WEFT_RETURN_IF_ERROR(WantWhole(graph, node, 1));
  if (weight.shape.rank() != 2 || weight.shape[0].symbol != Dim::kNumber ||
      weight.shape[1].symbol != Dim::kNumber ||
      FindWeightLayout(weight.layout) == nullptr ||
      weight.dtype == DType::kI32 || weight.dtype == DType::kQ8Rows) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op->name, " wants a weight [N,K], found ", weight.ToString()));
  }
  const bool quantized = x.dtype == DType::kQ8Rows;
  if (x.shape.rank() != 2 || !x.layout.empty() ||
      (x.dtype != DType::kF32 && !quantized) || x.shape[1] != weight.shape[1] ||
      (quantized && !Info(weight.dtype).quantized)) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.op->name, " cannot multiply ", x.ToString(), " by ",
                     weight.ToString()));
  }
  return Types{FloatType({x.shape[0], weight.shape[0]})};
}

absl::StatusOr<Types> InferFusedMatmul(const Graph& graph, const Node& node) {
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
    WEFT_RETURN_IF_ERROR(WantVector(graph, node, parts.norm, x.shape[1]));
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
  WEFT_RETURN_IF_ERROR(CheckGate(node, parts.gate));
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
      row = GatedRow(parts.gate, row);
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

constexpr OperandSchema kMatmulOperands[] = {RowsOperand("x"),
                                             WeightOperand("weight")};
constexpr OperandSchema kFusedOperands[] = {
    RowsOperand("x"),
    WeightOperand("weight"),
    Optional(WeightOperand("norm")),
    Optional(WeightOperand("norm_bias")),
    Optional(WeightOperand("bias")),
    Optional(RowsOperand("residual"))};

constexpr const char* kNormNames[] = {"rms", "layer"};
constexpr AttributeSchema kFusedAttributes[] = {
    Field<&FusedMatmulAttributes::eps>("eps", "of the norm of x; absent: none")
        .Optional()
        .AtLeast(0),
    Field<&FusedMatmulAttributes::norm>("norm", "which, with eps")
        .Optional()
        .OneOf(kNormNames),
    Field<&FusedMatmulAttributes::norm_bias>("norm_bias",
                                             "whether the norm has a bias")
        .Optional(),
    Field<&FusedMatmulAttributes::quantize>(
        "quantize", "whether the normed x is rounded (quantize_rows)")
        .Optional(),
    Field<&FusedMatmulAttributes::bias>("bias", "whether the product has one")
        .Optional(),
    Field<&FusedMatmulAttributes::epilogue>(
        "epilogue",
        "what becomes of the product; of a gate the weight's rows "
        "are 16 of gate and 16 of up in turn")
        .Optional()
        .OneOf(kEpilogueNames),
    Field<&FusedMatmulAttributes::limit>("limit", "of a clamped gate")
        .Optional()
        .AtLeast(0),
    Field<&FusedMatmulAttributes::slope>("slope", "of a clamped gate")
        .Optional()
        .AtLeast(0)};

constexpr OpDef Matmul() {
  OpDef op;
  op.name = "matmul";
  op.meaning = "f32[M,N] = x [M,K] weight^T, weight [N,K]";
  op.operands = kMatmulOperands;
  op.primitive = true;
  op.infer = InferMatmul;
  op.reference = RunFusedMatmul;
  op.operations = MatmulOperations;
  return op;
}

// The last operand may be the residual; which one is known from the node, so
// sharing its memory is the business of passes/lifetimes.
constexpr OpDef FusedMatmul() {
  OpDef op = Matmul();
  op.name = "fused_matmul";
  op.meaning = "epilogue(quantize(norm(x)) weight^T + bias)";
  op.operands = kFusedOperands;
  op.attributes = kFusedAttributes;
  op.primitive = false;
  op.made_of =
      "rms_norm or layer_norm, quantize_rows, matmul, add, silu or gelu, mul";
  op.in_place_operand = ResidualOperand;
  op.infer = InferFusedMatmul;
  op.rounds_inside = RoundsInside;
  return op;
}

}  // namespace

const EpilogueParts kEpilogueParts[kFusedEpilogues] = {
    {MatmulEpilogue::kStore},
    {MatmulEpilogue::kResidual},
    {MatmulEpilogue::kGate},
    {MatmulEpilogue::kGateQuantize},
    {MatmulEpilogue::kGate, GateActivation::kGeluTanh},
    {MatmulEpilogue::kGateQuantize, GateActivation::kGeluTanh},
    {MatmulEpilogue::kGate, GateActivation::kClamped},
    {MatmulEpilogue::kGateQuantize, GateActivation::kClamped},
};

FusedEpilogue FusedEpilogueOf(const EpilogueParts& parts) {
  int i = 0;
  while (i + 1 < kFusedEpilogues &&
         (kEpilogueParts[i].epilogue != parts.epilogue ||
          kEpilogueParts[i].activation != parts.activation)) {
    ++i;
  }
  return static_cast<FusedEpilogue>(i);
}

std::vector<double> GatedRow(const GateParts& gate,
                             const std::vector<double>& row) {
  std::vector<double> gated(row.size() / 2);
  for (size_t n = 0; n < gated.size(); ++n) {
    const size_t at = n / kPanelRows * 2 * kPanelRows + n % kPanelRows;
    const double up = row[at + kPanelRows];
    switch (gate.activation) {
      case GateActivation::kSilu:
        gated[n] = RoundToFloat(Silu(row[at])) * up;
        break;
      case GateActivation::kGeluTanh:
        gated[n] = RoundToFloat(GeluTanh(row[at])) * up;
        break;
      case GateActivation::kClamped:
        gated[n] = ClampedGate(row[at], up, gate.limit, gate.slope);
        break;
    }
  }
  return gated;
}

absl::Status CheckGate(const Node& node, const GateParts& gate) {
  const bool wants = gate.activation == GateActivation::kClamped;
  if (wants ? gate.limit > 0 && gate.slope > 0
            : gate.limit == 0 && gate.slope == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      node.op->name, wants ? " clamped gate needs limit and slope above 0"
                           : " has limit or slope but no clamped gate"));
}

bool IsMatmul(const Node& node) {
  return node.Is(kMatmulOp) || node.Is(kFusedMatmulOp);
}

MatmulParts PartsOf(const Node& node) {
  MatmulParts parts;
  parts.x = node.inputs[0];
  parts.weight = node.inputs[1];
  if (!node.Is(kFusedMatmulOp)) return parts;
  const auto fused = node.attributes.As<FusedMatmulAttributes>();
  int next = 2;
  if (fused.eps) parts.norm = next++;
  if (fused.norm_bias) parts.norm_bias = next++;
  parts.layer_norm = fused.norm == FusedNorm::kLayer;
  if (fused.bias) parts.bias = next++;
  parts.eps = fused.eps.value_or(0);
  parts.quantize = fused.quantize;
  const EpilogueParts& epilogue =
      kEpilogueParts[static_cast<int>(fused.epilogue)];
  parts.epilogue = epilogue.epilogue;
  parts.gate = {epilogue.activation, fused.limit, fused.slope};
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
  FusedMatmulAttributes fused;
  node->inputs = {parts.x, parts.weight};
  const auto add = [node](ValueId operand) {
    if (operand != kNone) node->inputs.push_back(operand);
    return operand != kNone;
  };
  if (add(operands.norm)) {
    fused.eps = parts.eps;
    if (parts.layer_norm) fused.norm = FusedNorm::kLayer;
    fused.quantize = parts.quantize;
  }
  fused.norm_bias = add(operands.norm_bias);
  fused.bias = add(operands.bias);
  add(operands.residual);
  fused.epilogue = FusedEpilogueOf({parts.epilogue, parts.gate.activation});
  fused.limit = parts.gate.limit;
  fused.slope = parts.gate.slope;
  node->Become(kFusedMatmulOp, fused);
}

absl::Span<const AttributeSchema> FusedMatmulAttributes::Schema() {
  return kFusedAttributes;
}

constexpr OpDef kMatmulOp = Matmul();
constexpr OpDef kFusedMatmulOp = FusedMatmul();

}  // namespace weft
