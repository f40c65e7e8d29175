// top_k, expert_matmul, expert_add, expert_mul, fused_expert_matmul and
// weighted_sum.
#include "ops/experts.h"

#include <algorithm>
#include <cmath>
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
  const auto choice = node.attributes.As<TopKAttributes>();
  const int64_t columns = shape[1].value;
  const int64_t group = columns / choice.groups;
  if (columns % choice.groups != 0 || choice.groups_used > choice.groups ||
      choice.group_best > group || k > choice.groups_used * group) {
    return absl::InvalidArgumentError(absl::StrCat(
        "top_k cannot choose ", k, " of ", columns, " columns from ",
        choice.groups_used, " of ", choice.groups, " groups by the ",
        choice.group_best, " best of each"));
  }
  if (node.inputs.size() > 1) {
    WEFT_RETURN_IF_ERROR(WantVector(graph, node, 1, shape[1]));
  }
  if (choice.margin > 0 && (node.inputs.size() > 1 || choice.groups > 1)) {
    return absl::InvalidArgumentError(
        "top_k attribute margin: goes with neither a bias nor groups");
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

// The largest of those that may be taken, the first where two are equal.
int Largest(const std::vector<double>& x, const std::vector<bool>& may) {
  int best = -1;
  for (int e = 0; e < static_cast<int>(x.size()); ++e) {
    if (may[e] && (best < 0 || x[e] > x[best])) best = e;
  }
  return best;
}

// Whether each column stands in one of the best groups.
std::vector<bool> InBestGroups(const std::vector<double>& x,
                               const TopKAttributes& choice) {
  std::vector<bool> may(x.size(), choice.groups_used == choice.groups);
  if (may[0]) return may;
  const size_t size = x.size() / choice.groups;
  std::vector<double> sums;
  for (int64_t g = 0; g < choice.groups; ++g) {
    const std::vector<double> group(x.begin() + g * size,
                                    x.begin() + (g + 1) * size);
    std::vector<bool> left(size, true);
    double sum = 0;
    for (int64_t i = 0; i < choice.group_best; ++i) {
      const int best = Largest(group, left);
      left[best] = false;
      sum = RoundToFloat(sum + group[best]);
    }
    sums.push_back(sum);
  }
  std::vector<bool> left(sums.size(), true);
  for (int64_t i = 0; i < choice.groups_used; ++i) {
    const int best = Largest(sums, left);
    left[best] = false;
    std::fill_n(may.begin() + best * size, size, true);
  }
  return may;
}

// The softmax of x[best] among those that may be taken and are near it.
double MixerShare(const std::vector<double>& x, const std::vector<bool>& may,
                  int best, double margin) {
  double sum = 0;
  for (size_t e = 0; e < x.size(); ++e) {
    const double gap = (x[best] - x[e]) / std::max(std::fabs(x[e]), x[best]);
    if (may[e] && !(gap > margin)) sum += std::exp(x[e] - x[best]);
  }
  return 1 / sum;
}

void RunTopK(const ReferenceCall& call) {
  const auto choice = call.attributes<TopKAttributes>();
  std::vector<double> bias(call.inputs[0].columns);
  if (call.node.inputs.size() > 1) bias = ReadRow(call, 1, 0);
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    const std::vector<double> x = ReadRow(call, 0, r);
    std::vector<double> by = x;
    for (size_t e = 0; e < x.size(); ++e) by[e] = RoundToFloat(x[e] + bias[e]);
    std::vector<bool> may = InBestGroups(by, choice);
    std::vector<double> p;
    double sum = 0;
    int32_t* ids = reinterpret_cast<int32_t*>(OutputRow(call, 0, r));
    for (int64_t i = 0; i < choice.k; ++i) {
      const int best = Largest(by, may);
      p.push_back(choice.margin > 0 ? MixerShare(x, may, best, choice.margin)
                                    : x[best]);
      may[best] = false;
      ids[i] = best;
      sum += p.back();
    }
    for (double& share : p) {
      if (choice.normalize) share /= std::max(sum, choice.least_sum);
    }
    WriteRow(call, 1, r, p);
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

// What follows the product.
EpilogueParts EpilogueOf(const Node& node) {
  if (!node.Is(kFusedExpertMatmulOp)) return {};
  const auto fused = node.attributes.As<FusedExpertMatmulAttributes>();
  return kEpilogueParts[static_cast<int>(fused.epilogue)];
}

GateParts GateOf(const Node& node) {
  if (!node.Is(kFusedExpertMatmulOp)) return {};
  const auto fused = node.attributes.As<FusedExpertMatmulAttributes>();
  return {EpilogueOf(node).activation, fused.limit, fused.slope};
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
  const MatmulEpilogue epilogue = EpilogueOf(node).epilogue;
  WEFT_RETURN_IF_ERROR(CheckGate(node, GateOf(node)));
  if (epilogue == MatmulEpilogue::kResidual) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.op->name, " takes no residual"));
  }
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
  if (node.inputs.size() > 3) {
    WEFT_RETURN_IF_ERROR(WantVector(graph, node, 3, weight.shape[0]));
  }
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

// Expert by expert, so that a matrix that no row wants is not read.
void RunExpertMatmul(const ReferenceCall& call) {
  const ExpertParts parts = ExpertPartsOf(call.graph, call.node);
  const int64_t rows = call.outputs[0].rows;
  const int64_t depth = call.inputs[1].columns;
  const int32_t* ids = Integers(call, 2);
  std::vector<double> bias;
  if (call.node.inputs.size() > 3) bias = ReadRow(call, 3, 0);
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
        sum = RoundToFloat(sum);
        if (!bias.empty()) sum += bias[e * parts.weight_rows + n];
        y[r][slot * parts.weight_rows + n] = RoundToFloat(sum);
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const bool gate = parts.epilogue != MatmulEpilogue::kStore;
    WriteRow(call, 0, r, gate ? GatedRow(parts.gate, y[r]) : y[r]);
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

// --- expert_add and expert_mul

absl::StatusOr<Types> InferExpertAdd(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  const int64_t experts = node.attributes.As<ExpertMatmulAttributes>().experts;
  WEFT_RETURN_IF_ERROR(WantIds(graph, node, 2, experts));
  const Shape& x = OperandType(graph, node, 0).shape;
  const Shape& ids = OperandType(graph, node, 2).shape;
  if (x.rank() != 2 || x[0] != ids[0] || x[1].symbol != Dim::kNumber ||
      x[1].value % ids[1].value != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.op->name, " cannot take ", x.ToString(), " for ",
                     ids[1].value, " experts of each row"));
  }
  WEFT_RETURN_IF_ERROR(WantVector(
      graph, node, 1, Dim::Number(x[1].value / ids[1].value * experts)));
  return Types{FloatType(x)};
}

void RunExpertAdd(const ReferenceCall& call) {
  const int64_t used = call.inputs[2].columns;
  const bool adds = call.node.Is(kExpertAddOp);
  const std::vector<double> own = ReadRow(call, 1, 0);
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    std::vector<double> x = ReadRow(call, 0, r);
    const int64_t n = static_cast<int64_t>(x.size()) / used;
    for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
      const double number =
          own[Integers(call, 2)[r * used + i / n] * n + i % n];
      x[i] = adds ? x[i] + number : x[i] * number;
    }
    WriteRow(call, 0, r, x);
  }
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

constexpr OperandSchema kTopKOperands[] = {RowsOperand("x"),
                                           Optional(WeightOperand("bias"))};
constexpr OperandSchema kExpertOperands[] = {
    RowsOperand("x"), WeightOperand("weight"),
    IndexOperand("ids", IndexKind::kChosen, -1)};
constexpr OperandSchema kFusedExpertOperands[] = {
    RowsOperand("x"), WeightOperand("weight"),
    IndexOperand("ids", IndexKind::kChosen, -1),
    Optional(WeightOperand("bias"))};
constexpr OperandSchema kExpertAddOperands[] = {
    RowsOperand("x"), WeightOperand("bias"),
    IndexOperand("ids", IndexKind::kChosen, -1)};
constexpr OperandSchema kExpertMulOperands[] = {
    RowsOperand("x"), WeightOperand("w"),
    IndexOperand("ids", IndexKind::kChosen, -1)};
constexpr OperandSchema kSumOperands[] = {RowsOperand("x"), RowsOperand("p")};

constexpr AttributeSchema kTopKAttributes[] = {
    Field<&TopKAttributes::k>("k", "how many of each row").From(1, kMaxExperts),
    Field<&TopKAttributes::normalize>("normalize",
                                      "whether p is divided by its sum"),
    Field<&TopKAttributes::least_sum>("least_sum", "what that sum is at least")
        .Optional()
        .AtLeast(0),
    Field<&TopKAttributes::groups>("groups", "equal parts of the columns")
        .Optional()
        .From(1, kMaxExperts),
    Field<&TopKAttributes::groups_used>("groups_used",
                                        "groups that are chosen from")
        .Optional()
        .From(1, kMaxExperts),
    Field<&TopKAttributes::group_best>(
        "group_best", "columns of a group whose sum says how good it is")
        .Optional()
        .From(1, kMaxExperts),
    Field<&TopKAttributes::margin>(
        "margin",
        "above 0: p is the softmax among those that are left and not further "
        "below the chosen one, relative to either (SparseMixer)")
        .Optional()
        .AtLeast(0)};
constexpr AttributeSchema kExpertAttributes[] = {
    Field<&ExpertMatmulAttributes::experts>("experts", "matrices in the weight")
        .From(1, kMaxExperts)};
constexpr AttributeSchema kFusedExpertAttributes[] = {
    Field<&FusedExpertMatmulAttributes::experts>("experts",
                                                 "matrices in the weight")
        .From(1, kMaxExperts),
    Field<&FusedExpertMatmulAttributes::epilogue>(
        "epilogue",
        "as of fused_matmul; each expert's rows are 16 of gate and 16 of up in "
        "turn")
        .Optional()
        .OneOf(kEpilogueNames),
    Field<&FusedExpertMatmulAttributes::limit>("limit", "of a clamped gate")
        .Optional()
        .AtLeast(0),
    Field<&FusedExpertMatmulAttributes::slope>("slope", "of a clamped gate")
        .Optional()
        .AtLeast(0)};

constexpr OpDef TopK() {
  OpDef op;
  op.name = "top_k";
  op.meaning =
      "ids i32[M,k]: the k largest of each row of x [M,E] + bias f32[E], "
      "largest first, the lower column where two are equal; p f32[M,k]: x "
      "there";
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

constexpr OpDef ExpertAdd() {
  OpDef op;
  op.name = "expert_add";
  op.meaning =
      "x f32[M,k*N] + the rows of bias [E*N] that belong to a row's k experts";
  op.operands = kExpertAddOperands;
  op.attributes = kExpertAttributes;
  op.primitive = true;
  op.in_place_operand = FirstOperand;
  op.infer = InferExpertAdd;
  op.reference = RunExpertAdd;
  return op;
}

constexpr OpDef ExpertMul() {
  OpDef op = ExpertAdd();
  op.name = "expert_mul";
  op.meaning =
      "x f32[M,k*N] * the rows of w [E*N] that belong to a row's k experts";
  op.operands = kExpertMulOperands;
  return op;
}

constexpr OpDef FusedExpertMatmul() {
  OpDef op = ExpertMatmul();
  op.name = "fused_expert_matmul";
  op.meaning = "epilogue(expert_matmul(x, weight, ids) + bias)";
  op.operands = kFusedExpertOperands;
  op.attributes = kFusedExpertAttributes;
  op.primitive = false;
  op.made_of =
      "expert_matmul, expert_add, silu or gelu, mul, clamped_gate, "
      "quantize_rows";
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
  return IsMatmul(node) || IsExpertMatmul(node) || node.Is(kHeadMatmulOp);
}

ExpertParts ExpertPartsOf(const Graph& graph, const Node& node) {
  ExpertParts parts;
  const Shape& weight = OperandType(graph, node, 1).shape;
  parts.experts = ExpertsOf(node);
  parts.used = OperandType(graph, node, 2).shape[1].value;
  parts.weight_rows = weight[0].value / parts.experts;
  parts.shared = OperandType(graph, node, 0).shape[1] == weight[1];
  parts.epilogue = EpilogueOf(node).epilogue;
  parts.gate = GateOf(node);
  parts.bias = node.inputs.size() > 3;
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
constexpr OpDef kExpertAddOp = ExpertAdd();
constexpr OpDef kExpertMulOp = ExpertMul();
constexpr OpDef kFusedExpertMatmulOp = FusedExpertMatmul();
constexpr OpDef kWeightedSumOp = WeightedSum();

}  // namespace weft
