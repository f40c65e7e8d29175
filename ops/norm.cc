// rms_norm and layer_norm, and the two with their result rounded:
// rms_norm_quantize and layer_norm_quantize.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

// x, weight and perhaps a bias. A row may be several heads, side by side.
absl::Status CheckNorm(const Graph& graph, const Node& node, int most_heads) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  const Shape& shape = OperandType(graph, node, 0).shape;
  // Kernels take all but the first dimension for the columns.
  if (shape.rank() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op, " wants a matrix [M,N], found ", shape.ToString()));
  }
  Dim columns = shape[1];
  if (node.attributes.Has("heads")) {
    WEFT_RETURN_IF_ERROR(WantInt(node, "heads", 1, most_heads));
    const int64_t heads = node.attributes.Int("heads");
    if (columns.symbol != Dim::kNumber || columns.value % heads != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(node.op, ": ", shape.ToString(),
                       " does not divide into ", heads, " heads"));
    }
    // One weight for all heads, or each its own.
    const Shape& weight = OperandType(graph, node, 1).shape;
    if (weight != Shape{columns}) columns.value /= heads;
  }
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    WEFT_RETURN_IF_ERROR(WantVector(graph, node, static_cast<int>(i), columns));
  }
  return WantFloat(node, "eps", -1e-30);
}

constexpr int kMostHeads = 1 << 16;

absl::StatusOr<Types> InferRmsNorm(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 2, 2));
  WEFT_RETURN_IF_ERROR(CheckNorm(graph, node, kMostHeads));
  return Types{FloatType(OperandType(graph, node, 0).shape)};
}

absl::StatusOr<Types> InferRmsNormQuantize(const Graph& graph,
                                           const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 2, 2));
  WEFT_RETURN_IF_ERROR(CheckNorm(graph, node, 1));
  return Types{{DType::kQ8Rows, OperandType(graph, node, 0).shape, ""}};
}

absl::StatusOr<Types> InferLayerNorm(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 2, 3));
  WEFT_RETURN_IF_ERROR(CheckNorm(graph, node, kMostHeads));
  return Types{FloatType(OperandType(graph, node, 0).shape)};
}

absl::StatusOr<Types> InferLayerNormQuantize(const Graph& graph,
                                             const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 2, 3));
  WEFT_RETURN_IF_ERROR(CheckNorm(graph, node, 1));
  return Types{{DType::kQ8Rows, OperandType(graph, node, 0).shape, ""}};
}

using Row = std::vector<double>;

// Normalises each head of each row by `norm`(head, weight, bias).
template <typename Norm>
void ForEachHead(const ReferenceCall& call, Norm norm) {
  const int64_t heads = call.node.attributes.Int("heads", 1);
  const Row weight = ReadRow(call, 1, 0);
  Row bias(weight.size());
  if (call.node.inputs.size() > 2) bias = ReadRow(call, 2, 0);
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
    WriteRow(call, 0, r, x);
  }
}

void RunRmsNorm(const ReferenceCall& call) {
  const double eps = call.node.attributes.Float("eps");
  ForEachHead(call, [eps](const Row& x, const Row& weight, const Row&) {
    return RmsNormRow(x, weight, eps);
  });
}

void RunLayerNorm(const ReferenceCall& call) {
  const double eps = call.node.attributes.Float("eps");
  ForEachHead(call, [eps](const Row& x, const Row& weight, const Row& bias) {
    return LayerNormRow(x, weight, bias, eps);
  });
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
const OpDef kLayerNormQuantizeOp = {
    "layer_norm_quantize",  false,        false,         nullptr, false,
    InferLayerNormQuantize, RunLayerNorm, NormOperations};

}  // namespace weft
