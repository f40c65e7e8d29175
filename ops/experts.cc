// top_k, expert_matmul, fused_expert_matmul and weighted_sum.
#include "ops/experts.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "ops/fused_matmul.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

// --- top_k

absl::StatusOr<Types> InferTopK(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  const Shape& shape = OperandType(graph, node, 0).shape;
  if (shape.rank() != 2 || shape[1].symbol != Dim::kNumber ||
      shape[1].value > kMaxExperts) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_k wants a matrix [M,E<=", kMaxExperts, "], found ",
                     shape.ToString()));
  }
  const int64_t k = node.attributes.As<TopKAttributes>().k;
  if (k > shape[1].value) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_k attribute k: is ", k,
                     ", want an integer from 1 to ", shape[1].value));
  }
  // Kernels count pairs of rows and experts in 32 bits.
  if (CappedProduct(shape[0].Resolve(graph.bounds), k) >
      std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        "top_k chooses more than 2^31 numbers in a step");
  }
  const Shape chosen{shape[0], Dim::Number(k)};
  return Types{{DType::kI32, chosen, ""}, FloatType(chosen)};
}

void RunTopK(const ReferenceCall& call) {
  const int64_t k = call.outputs[0].columns;
  const bool normalize = call.attributes<TopKAttributes>().normalize;
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    const std::vector<double> x = ReadRow(call, 0, r);
    std::vector<bool> taken(x.size());
    std::vector<double> largest;
    double sum = 0;
    int32_t* ids = reinterpret_cast<int32_t*>(OutputRow(call, 0, r));
    for (int64_t i = 0; i < k; ++i) {
      int best = -1;
      for (int e = 0; e < static_cast<int>(x.size()); ++e) {
        if (!taken[e] && (best < 0 || x[e] > x[best])) best = e;
      }
      taken[best] = true;
      ids[i] = best;
      largest.push_back(x[best]);
      sum += x[best];
    }
    for (double& p : largest) p /= normalize ? sum : 1;
    WriteRow(call, 1, r, largest);
  }
}

int64_t TopKOperations(const Graph& graph, const Node& node,
                       const Bounds& bounds) {
  return node.attributes.As<TopKAttributes>().k *
         OperandType(graph, node, 0).shape.Elements(bounds);
}

// --- expert_matmul and fused_expert_matmul

// The ids are what top_k has chosen among so many.
absl::Status WantIds(const Graph& graph, const Node& node, int i,
                     int64_t experts) {
  const NodeId producer = graph.ProducerOf(node.inputs[i], kTopKOp);
  if (producer != kNone) {
    const Node& gate = graph.node(producer);
    if (gate.outputs[0] == node.inputs[i] &&
        OperandType(graph, gate, 0).shape[1] == Dim::Number(experts)) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(node.op->name, " operand ", i,
                   ": want the ids of a top_k among ", experts, " experts"));
}

MatmulEpilogue EpilogueOf(const Node& node) {
  if (!node.Is(kFusedExpertMatmulOp)) return MatmulEpilogue::kStore;
  switch (node.attributes.As<FusedExpertMatmulAttributes>().epilogue) {
    case ExpertEpilogue::kSiluGate:
      return MatmulEpilogue::kGate;
    case ExpertEpilogue::kSiluGateQuantize:
      break;
  }
  return MatmulEpilogue::kGateQuantize;
}

int64_t ExpertsOf(const Node& node) {
  return node.Is(kFusedExpertMatmulOp)
             ? node.attributes.As<FusedExpertMatmulAttributes>().experts
             : node.attributes.As<ExpertMatmulAttributes>().experts;
}

absl::StatusOr<Types> InferExpertMatmul(const Graph& graph, const Node& node) {
  const ValueType& x = OperandType(graph, node, 0);
  const ValueType& weight = OperandType(graph, node, 1);
  const int64_t experts = ExpertsOf(node);
  WEFT_RETURN_IF_ERROR(WantIds(graph, node, 2, experts));
  WEFT_RETURN_IF_ERROR(WantWhole(graph, node, 1));
  const MatmulEpilogue epilogue = EpilogueOf(node);
  if (weight.shape.rank() != 2 || weight.shape[0].symbol != Dim::kNumber ||
      weight.shape[1].symbol != Dim::kNumber ||
      weight.shape[0].value % experts != 0 ||
      FindWeightLayout(weight.layout) == nullptr ||
      weight.dtype == DType::kI32 || weight.dtype == DType::kQ8Rows) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.op->name, " wants a weight [", experts,
                     "*N,K], found ", weight.ToString()));
  }
  const Shape& ids = OperandType(graph, node, 2).shape;
  const int64_t used = ids[1].value;
  const int64_t depth = weight.shape[1].value;
  const bool quantized = x.dtype == DType::kQ8Rows;
  if (x.shape.rank() != 2 || !x.layout.empty() || x.shape[0] != ids[0] ||
      (x.dtype != DType::kF32 && !quantized) ||
      (x.shape[1] != Dim::Number(depth) &&
       x.shape[1] != Dim::Number(used * depth)) ||
      (quantized && !Info(weight.dtype).quantized)) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.op->name, " cannot multiply ", x.ToString(), " by ",
                     weight.ToString(), " for ", used, " experts of each row"));
  }
  const int64_t rows = weight.shape[0].value / experts;
  if (epilogue == MatmulEpilogue::kStore) {
    return Types{FloatType({x.shape[0], Dim::Number(used * rows)})};
  }
  const bool quantizes = epilogue == MatmulEpilogue::kGateQuantize;
  if (rows % (quantizes ? 64 : 32) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op->name, " gate needs whole panels of gate and up rows, found ",
        rows, " rows of an expert"));
  }
  return Types{{quantizes ? DType::kQ8Rows : DType::kF32,
                Shape{x.shape[0], Dim::Number(used * rows / 2)}, ""}};
}

// silu(gate) * up, where 16 of each stand in turn.
std::vector<double> Gated(const std::vector<double>& row) {
  std::vector<double> gated(row.size() / 2);
  for (size_t n = 0; n < gated.size(); ++n) {
    const size_t gate = n / kPanelRows * 2 * kPanelRows + n % kPanelRows;
    gated[n] = RoundToFloat(Silu(row[gate])) * row[gate + kPanelRows];
  }
  return gated;
}

// Expert by expert, so that a matrix that no row wants is not read.
void RunExpertMatmul(const ReferenceCall& call) {
  const ExpertParts parts = ExpertPartsOf(call.graph, call.node);
  const int64_t rows = call.outputs[0].rows;
  const int64_t depth = call.inputs[1].columns;
  const int32_t* ids = Integers(call, 2);
  std::vector<std::vector<double>> x(rows), y(rows);
  for (int64_t r = 0; r < rows; ++r) {
    x[r] = ReadRow(call, 0, r);
    y[r].resize(parts.used * parts.weight_rows);
  }
  for (int64_t e = 0; e < parts.experts; ++e) {
    if (std::count(ids, ids + rows * parts.used, e) == 0) continue;
    for (int64_t n = 0; n < parts.weight_rows; ++n) {
      const std::vector<double> weight =
          ReadRow(call, 1, e * parts.weight_rows + n);
      for (int64_t place = 0; place < rows * parts.used; ++place) {
        if (ids[place] != e) continue;
        const int64_t r = place / parts.used, slot = place % parts.used;
        const double* from = x[r].data() + (parts.shared ? 0 : slot * depth);
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k) sum += from[k] * weight[k];
        y[r][slot * parts.weight_rows + n] = RoundToFloat(sum);
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const bool gate = parts.epilogue != MatmulEpilogue::kStore;
    WriteRow(call, 0, r, gate ? Gated(y[r]) : y[r]);
  }
}

int64_t ExpertOperations(const Graph& graph, const Node& node,
                         const Bounds& bounds) {
  const ExpertParts parts = ExpertPartsOf(graph, node);
  const int64_t rows = OperandType(graph, node, 0).shape[0].Resolve(bounds);
  return CappedProduct(2 * rows * parts.used * parts.weight_rows,
                       OperandType(graph, node, 1).shape[1].value);
}

int64_t ExpertRowsRead(const Graph& graph, const Node& node, int operand,
                       const Bounds& bounds) {
  if (operand != 1) return -1;
  const ExpertParts parts = ExpertPartsOf(graph, node);
  return parts.weight_rows *
         ExpertsRead(parts,
                     OperandType(graph, node, 0).shape[0].Resolve(bounds));
}

// --- weighted_sum

absl::StatusOr<Types> InferWeightedSum(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 1));
  const Shape& x = OperandType(graph, node, 0).shape;
  const Shape& weights = OperandType(graph, node, 1).shape;
  if (x.rank() != 2 || weights.rank() != 2 || x[0] != weights[0] ||
      x[1].symbol != Dim::kNumber || weights[1].symbol != Dim::kNumber ||
      x[1].value % weights[1].value != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("weighted_sum cannot add parts of ", x.ToString(),
                     " with weights ", weights.ToString()));
  }
  return Types{FloatType({x[0], Dim::Number(x[1].value / weights[1].value)})};
}

void RunWeightedSum(const ReferenceCall& call) {
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    const std::vector<double> x = ReadRow(call, 0, r);
    const std::vector<double> weights = ReadRow(call, 1, r);
    std::vector<double> sum(x.size() / weights.size());
    for (size_t k = 0; k < x.size(); ++k) {
      sum[k % sum.size()] += weights[k / sum.size()] * x[k];
    }
    WriteRow(call, 0, r, sum);
  }
}

int64_t SumOperations(const Graph& graph, const Node& node,
                      const Bounds& bounds) {
  return 2 * OperandType(graph, node, 0).shape.Elements(bounds);
}

constexpr OperandSchema kTopKOperands[] = {RowsOperand("x")};
constexpr OperandSchema kExpertOperands[] = {
    RowsOperand("x"), WeightOperand("weight"),
    IndexOperand("ids", IndexKind::kChosen, -1)};
constexpr OperandSchema kSumOperands[] = {RowsOperand("x"), RowsOperand("p")};

constexpr AttributeSchema kTopKAttributes[] = {
    Field<&TopKAttributes::k>("k", "how many of each row").From(1, kMaxExperts),
    Field<&TopKAttributes::normalize>("normalize",
                                      "whether p is divided by its sum")};
constexpr AttributeSchema kExpertAttributes[] = {
    Field<&ExpertMatmulAttributes::experts>("experts", "matrices in the weight")
        .From(1, kMaxExperts)};
constexpr const char* kExpertEpilogues[] = {"silu_gate", "silu_gate_quantize"};
constexpr AttributeSchema kFusedExpertAttributes[] = {
    Field<&FusedExpertMatmulAttributes::experts>("experts",
                                                 "matrices in the weight")
        .From(1, kMaxExperts),
    Field<&FusedExpertMatmulAttributes::epilogue>(
        "epilogue", "each expert's rows are 16 of gate and 16 of up in turn")
        .OneOf(kExpertEpilogues)};

constexpr OpDef TopK() {
  OpDef op;
  op.name = "top_k";
  op.meaning =
      "ids i32[M,k], p f32[M,k]: the k largest of each row of x [M,E], largest "
      "first, the lower column where two are equal";
  op.operands = kTopKOperands;
  op.attributes = kTopKAttributes;
  op.primitive = true;
  op.infer = InferTopK;
  op.reference = RunTopK;
  op.operations = TopKOperations;
  return op;
}

constexpr OpDef ExpertMatmul() {
  OpDef op;
  op.name = "expert_matmul";
  op.meaning =
      "f32[M,k*N]: x times the matrix of each of a row's k experts, weight "
      "[E*N,K], ids of top_k; x [M,k*K] has columns for each";
  op.operands = kExpertOperands;
  op.attributes = kExpertAttributes;
  op.primitive = true;
  op.infer = InferExpertMatmul;
  op.reference = RunExpertMatmul;
  op.operations = ExpertOperations;
  op.rows_read = ExpertRowsRead;
  return op;
}

constexpr OpDef FusedExpertMatmul() {
  OpDef op = ExpertMatmul();
  op.name = "fused_expert_matmul";
  op.meaning = "epilogue(expert_matmul(x, weight, ids))";
  op.attributes = kFusedExpertAttributes;
  op.primitive = false;
  op.made_of = "expert_matmul, silu, mul, quantize_rows";
  return op;
}

constexpr OpDef WeightedSum() {
  OpDef op;
  op.name = "weighted_sum";
  op.meaning =
      "f32[M,D]: the k parts of a row of x f32[M,k*D], each times its number "
      "of p f32[M,k], added in order";
  op.operands = kSumOperands;
  op.primitive = true;
  op.infer = InferWeightedSum;
  op.reference = RunWeightedSum;
  op.operations = SumOperations;
  return op;
}

}  // namespace

bool IsExpertMatmul(const Node& node) {
  return node.Is(kExpertMatmulOp) || node.Is(kFusedExpertMatmulOp);
}

bool IsProduct(const Node& node) {
  return IsMatmul(node) || IsExpertMatmul(node);
}

ExpertParts ExpertPartsOf(const Graph& graph, const Node& node) {
  ExpertParts parts;
  const Shape& weight = OperandType(graph, node, 1).shape;
  parts.experts = ExpertsOf(node);
  parts.used = OperandType(graph, node, 2).shape[1].value;
  parts.weight_rows = weight[0].value / parts.experts;
  parts.shared = OperandType(graph, node, 0).shape[1] == weight[1];
  parts.epilogue = EpilogueOf(node);
  parts.columns = parts.epilogue == MatmulEpilogue::kStore
                      ? parts.weight_rows
                      : parts.weight_rows / 2;
  return parts;
}

int64_t ExpertsRead(const ExpertParts& parts, int64_t rows) {
  return std::min(parts.experts, CappedProduct(rows, parts.used));
}

absl::Span<const AttributeSchema> TopKAttributes::Schema() {
  return kTopKAttributes;
}
absl::Span<const AttributeSchema> ExpertMatmulAttributes::Schema() {
  return kExpertAttributes;
}
absl::Span<const AttributeSchema> FusedExpertMatmulAttributes::Schema() {
  return kFusedExpertAttributes;
}

constexpr OpDef kTopKOp = TopK();
constexpr OpDef kExpertMatmulOp = ExpertMatmul();
constexpr OpDef kFusedExpertMatmulOp = FusedExpertMatmul();
constexpr OpDef kWeightedSumOp = WeightedSum();

}  // namespace weft
