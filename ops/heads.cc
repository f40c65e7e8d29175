// head_matmul and concat_heads.
#include "ops/heads.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/storage.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

int64_t HeadsOf(const Node& node) {
  return node.attributes.As<HeadAttributes>().heads;
}

absl::StatusOr<Types> InferHeadMatmul(const Graph& graph, const Node& node) {
  const ValueType& x = OperandType(graph, node, 0);
  const ValueType& weight = OperandType(graph, node, 1);
  const int64_t heads = HeadsOf(node);
  WEFT_RETURN_IF_ERROR(WantWhole(graph, node, 1));
  if (weight.shape.rank() != 2 || weight.shape[0].symbol != Dim::kNumber ||
      weight.shape[1].symbol != Dim::kNumber ||
      weight.shape[0].value % heads != 0 ||
      FindWeightLayout(weight.layout) == nullptr ||
      weight.dtype == DType::kI32 || weight.dtype == DType::kQ8Rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("head_matmul wants a weight [", heads, "*N,K], found ",
                     weight.ToString()));
  }
  const bool quantized = x.dtype == DType::kQ8Rows;
  if (x.shape.rank() != 2 || !x.layout.empty() ||
      (x.dtype != DType::kF32 && !quantized) ||
      x.shape[1].symbol != Dim::kNumber || x.shape[1].value % heads != 0 ||
      x.shape[1].value / heads != weight.shape[1].value ||
      (quantized && !Info(weight.dtype).quantized)) {
    return absl::InvalidArgumentError(
        absl::StrCat("head_matmul cannot multiply ", x.ToString(), " by ",
                     weight.ToString(), " for ", heads, " heads"));
  }
  return Types{FloatType({x.shape[0], weight.shape[0]})};
}

void RunHeadMatmul(const ReferenceCall& call) {
  const HeadParts parts = HeadPartsOf(call.graph, call.node);
  const int64_t rows = call.outputs[0].rows;
  std::vector<std::vector<double>> x(rows), y(rows);
  for (int64_t r = 0; r < rows; ++r) {
    x[r] = ReadRow(call, 0, r);
    y[r].resize(parts.heads * parts.weight_rows);
  }
  for (int64_t n = 0; n < parts.heads * parts.weight_rows; ++n) {
    const std::vector<double> weight = ReadRow(call, 1, n);
    const int64_t first = n / parts.weight_rows * parts.depth;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t k = 0; k < parts.depth; ++k) {
        y[r][n] += x[r][first + k] * weight[k];
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) WriteRow(call, 0, r, y[r]);
}

int64_t HeadOperations(const Graph& graph, const Node& node,
                       const Bounds& bounds) {
  return CappedProduct(2 * OperandType(graph, node, 0).shape.Elements(bounds),
                       HeadPartsOf(graph, node).weight_rows);
}

absl::StatusOr<Types> InferConcatHeads(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 1));
  const Shape& a = OperandType(graph, node, 0).shape;
  const Shape& b = OperandType(graph, node, 1).shape;
  const int64_t heads = HeadsOf(node);
  if (a.rank() != 2 || b.rank() != 2 || a[0] != b[0] ||
      a[1].symbol != Dim::kNumber || b[1].symbol != Dim::kNumber ||
      a[1].value % heads != 0 || b[1].value % heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("concat_heads cannot join ", a.ToString(), " and ",
                     b.ToString(), " by ", heads, " heads"));
  }
  return Types{FloatType({a[0], Dim::Number(a[1].value + b[1].value)})};
}

void RunConcatHeads(const ReferenceCall& call) {
  const int64_t heads = HeadsOf(call.node);
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    const std::vector<double> a = ReadRow(call, 0, r), b = ReadRow(call, 1, r);
    std::vector<double> y;
    for (int64_t h = 0; h < heads; ++h) {
      for (const std::vector<double>* part : {&a, &b}) {
        const auto head = part->begin() + h * (part->size() / heads);
        y.insert(y.end(), head, head + part->size() / heads);
      }
    }
    WriteRow(call, 0, r, y);
  }
}

constexpr OperandSchema kProductOperands[] = {RowsOperand("x"),
                                              WeightOperand("weight")};
constexpr OperandSchema kConcatOperands[] = {RowsOperand("a"),
                                             RowsOperand("b")};
constexpr AttributeSchema kHeadAttributes[] = {
    Field<&HeadAttributes::heads>("heads", "equal parts of a row")
        .From(1, 1 << 16)};

constexpr OpDef HeadMatmul() {
  OpDef op;
  op.name = "head_matmul";
  op.meaning =
      "f32[M,H*N]: each of the H heads of x [M,H*K] times its matrix, weight "
      "[H*N,K]";
  op.operands = kProductOperands;
  op.attributes = kHeadAttributes;
  op.primitive = true;
  op.infer = InferHeadMatmul;
  op.reference = RunHeadMatmul;
  op.operations = HeadOperations;
  return op;
}

constexpr OpDef ConcatHeads() {
  OpDef op;
  op.name = "concat_heads";
  op.meaning = "f32[M,H*(A+B)]: each of the H heads of a, then of b";
  op.operands = kConcatOperands;
  op.attributes = kHeadAttributes;
  op.primitive = true;
  op.infer = InferConcatHeads;
  op.reference = RunConcatHeads;
  return op;
}

}  // namespace

HeadParts HeadPartsOf(const Graph& graph, const Node& node) {
  const Shape& weight = OperandType(graph, node, 1).shape;
  const int64_t heads = HeadsOf(node);
  return {heads, weight[1].value, weight[0].value / heads};
}

int64_t PageBytesOfHeads(const Graph& graph, const Node& node) {
  if (!node.Is(kAttentionOp) || node.inputs[1] != node.inputs[2]) return 0;
  const auto attention = node.attributes.As<AttentionAttributes>();
  const NodeId queries = graph.ProducerOf(node.inputs[0], kConcatHeadsOp);
  if (queries == kNone || attention.value_dim == 0) return 0;
  const NodeId absorbed =
      graph.ProducerOf(graph.node(queries).inputs[0], kHeadMatmulOp);
  NodeId results = graph.OnlyUser(node.outputs[0]);
  if (results != kNone && graph.node(results).Is(kQuantizeRowsOp)) {
    results = graph.OnlyUser(graph.node(results).outputs[0]);
  }
  if (absorbed == kNone || results == kNone ||
      !graph.node(results).Is(kHeadMatmulOp)) {
    return 0;
  }
  ValueType state = OperandType(graph, node, 1);
  const int64_t shared = state.shape[2].value - attention.value_dim;
  const auto page_bytes = [&](int64_t numbers) {
    state.shape = {state.shape[0], Dim::Number(attention.heads),
                   Dim::Number(numbers)};
    return KvPageBytes(state);
  };
  return page_bytes(HeadPartsOf(graph, graph.node(absorbed)).depth + shared) +
         page_bytes(HeadPartsOf(graph, graph.node(results)).weight_rows);
}

absl::Span<const AttributeSchema> HeadAttributes::Schema() {
  return kHeadAttributes;
}

constexpr OpDef kHeadMatmulOp = HeadMatmul();
constexpr OpDef kConcatHeadsOp = ConcatHeads();

}  // namespace weft
