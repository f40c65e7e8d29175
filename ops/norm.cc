// rms_norm, layer_norm, and rms_norm_quantize.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

absl::Status CheckNorm(const Graph& graph, const Node& node, int operands) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, operands, operands));
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  const Shape& shape = OperandType(graph, node, 0).shape;
  // Kernels take all but the first dimension for the columns.
  if (shape.rank() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op, " wants a matrix [M,N], found ", shape.ToString()));
  }
  for (int i = 1; i < operands; ++i) {
    WEFT_RETURN_IF_ERROR(WantVector(graph, node, i, shape[shape.rank() - 1]));
  }
  return WantFloat(node, "eps", -1e-30);
}

absl::StatusOr<Types> InferRmsNorm(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(CheckNorm(graph, node, 2));
  return Types{FloatType(OperandType(graph, node, 0).shape)};
}

absl::StatusOr<Types> InferRmsNormQuantize(const Graph& graph,
                                           const Node& node) {
  WEFT_RETURN_IF_ERROR(CheckNorm(graph, node, 2));
  return Types{{DType::kQ8Rows, OperandType(graph, node, 0).shape, ""}};
}

void RunRmsNorm(const ReferenceCall& call) {
  const std::vector<double> weight = ReadRow(call, 1, 0);
  const double eps = call.node.attributes.Float("eps");
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    WriteRow(call, 0, r, RmsNormRow(ReadRow(call, 0, r), weight, eps));
  }
}

absl::StatusOr<Types> InferLayerNorm(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(CheckNorm(graph, node, 3));
  return Types{FloatType(OperandType(graph, node, 0).shape)};
}

void RunLayerNorm(const ReferenceCall& call) {
  const std::vector<double> weight = ReadRow(call, 1, 0);
  const std::vector<double> bias = ReadRow(call, 2, 0);
  const double eps = call.node.attributes.Float("eps");
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    std::vector<double> x = ReadRow(call, 0, r);
    double mean = 0, variance = 0;
    for (double v : x) mean += v;
    mean /= x.size();
    for (double v : x) variance += (v - mean) * (v - mean);
    const double inverse = 1.0 / std::sqrt(variance / x.size() + eps);
    for (size_t k = 0; k < x.size(); ++k) {
      x[k] = (x[k] - mean) * inverse * weight[k] + bias[k];
    }
    WriteRow(call, 0, r, x);
  }
}

int64_t NormOperations(const Graph& graph, const Node& node,
                       const Bounds& bounds) {
  return 4 * OperandType(graph, node, 0).shape.Elements(bounds);
}

}  // namespace

const OpDef kRmsNormOp = {"rms_norm", true,         false,      FirstOperand,
                          false,      InferRmsNorm, RunRmsNorm, NormOperations};
const OpDef kLayerNormOp = {"layer_norm", true,          false,
                            FirstOperand, false,         InferLayerNorm,
                            RunLayerNorm, NormOperations};
const OpDef kRmsNormQuantizeOp = {
    "rms_norm_quantize",  false,      false,         nullptr, false,
    InferRmsNormQuantize, RunRmsNorm, NormOperations};

}  // namespace weft
