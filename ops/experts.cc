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
  WEFT_RETURN_IF_ERROR(WantOperands(node, 1, 1));
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  const Shape& shape = OperandType(graph, node, 0).shape;
  if (shape.rank() != 2 || shape[1].symbol != Dim::kNumber ||
      shape[1].value > kMaxExperts) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_k wants a matrix [M,E<=", kMaxExperts, "], found ",
                     shape.ToString()));
  }
  WEFT_RETURN_IF_ERROR(WantInt(node, "k", 1, shape[1].value));
  WEFT_RETURN_IF_ERROR(WantInt(node, "normalize", 0, 1));
  // Kernels count pairs of rows and experts in 32 bits.
  if (CappedProduct(shape[0].Resolve(graph.bounds), node.attributes.Int("k")) >
      std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        "top_k chooses more than 2^31 numbers in a step");
  }
  const Shape chosen{shape[0], Dim::Number(node.attributes.Int("k"))};
  return Types{{DType::kI32, chosen, ""}, FloatType(chosen)};
}

void RunTopK(const ReferenceCall& call) {
  const int64_t k = call.outputs[0].columns;
  const bool normalize = call.node.attributes.Int("normalize") != 0;
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
  return node.attributes.Int("k") *
         OperandType(graph, node, 0).shape.Elements(bounds);
}

// --- expert_matmul and fused_expert_matmul

// The ids are what top_k has chosen among so many.
absl::Status WantIds(const Graph& graph, const Node& node, int i,
                     int64_t experts) {
  const NodeId producer = graph.ProducerOf(node.inputs[i], "top_k");
  if (producer != kNone) {
    const Node& gate = graph.node(producer);
    if (gate.outputs[0] == node.inputs[i] &&
        OperandType(graph, gate, 0).shape[1] == Dim::Number(experts)) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(node.op, " operand ", i, ": want the ids of a top_k among ",
                   experts, " experts"));
}

absl::StatusOr<MatmulEpilogue> EpilogueOf(const Node& node) {
  const std::string name = node.attributes.String("epilogue");
  if (node.op == kExpertMatmulOp.name) {
    if (!node.attributes.Has("epilogue")) return MatmulEpilogue::kStore;
  } else if (name == "silu_gate") {
    return MatmulEpilogue::kGate;
  } else if (name == "silu_gate_quantize") {
    return MatmulEpilogue::kGateQuantize;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(node.op, " has no epilogue '", name, "'"));
}

absl::StatusOr<Types> InferExpertMatmul(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantOperands(node, 3, 3));
  const ValueType& x = OperandType(graph, node, 0);
  const ValueType& weight = OperandType(graph, node, 1);
  WEFT_RETURN_IF_ERROR(WantInt(node, "experts", 1, kMaxExperts));
  const int64_t experts = node.attributes.Int("experts");
  WEFT_RETURN_IF_ERROR(WantIds(graph, node, 2, experts));
  WEFT_RETURN_IF_ERROR(WantWhole(graph, node, 1));
  WEFT_ASSIGN_OR_RETURN(const MatmulEpilogue epilogue, EpilogueOf(node));
  if (weight.shape.rank() != 2 || weight.shape[0].symbol != Dim::kNumber ||
      weight.shape[1].symbol != Dim::kNumber ||
      weight.shape[0].value % experts != 0 ||
      FindWeightLayout(weight.layout) == nullptr ||
      weight.dtype == DType::kI32 || weight.dtype == DType::kQ8Rows) {
    return absl::InvalidArgumentError(absl::StrCat(node.op, " wants a weight [",
                                                   experts, "*N,K], found ",
                                                   weight.ToString()));
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
        absl::StrCat(node.op, " cannot multiply ", x.ToString(), " by ",
                     weight.ToString(), " for ", used, " experts of each row"));
  }
  const int64_t rows = weight.shape[0].value / experts;
  if (epilogue == MatmulEpilogue::kStore) {
    return Types{FloatType({x.shape[0], Dim::Number(used * rows)})};
  }
  const bool quantizes = epilogue == MatmulEpilogue::kGateQuantize;
  if (rows % (quantizes ? 64 : 32) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op, " gate needs whole panels of gate and up rows, found ", rows,
        " rows of an expert"));
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
  WEFT_RETURN_IF_ERROR(WantOperands(node, 2, 2));
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

constexpr IndexOperand kExpertIds[] = {{2, IndexKind::kChosen}};

constexpr OpDef ExpertMatmulOp(const char* name, bool primitive) {
  OpDef op{};
  op.name = name;
  op.primitive = primitive;
  op.infer = InferExpertMatmul;
  op.reference = RunExpertMatmul;
  op.operations = ExpertOperations;
  op.index_operands = kExpertIds;
  op.rows_read = ExpertRowsRead;
  return op;
}

}  // namespace

bool IsExpertMatmul(const Node& node) {
  return node.op == kExpertMatmulOp.name ||
         node.op == kFusedExpertMatmulOp.name;
}

bool IsProduct(const Node& node) {
  return IsMatmul(node) || IsExpertMatmul(node);
}

ExpertParts ExpertPartsOf(const Graph& graph, const Node& node) {
  ExpertParts parts;
  const Shape& weight = OperandType(graph, node, 1).shape;
  parts.experts = node.attributes.Int("experts");
  parts.used = OperandType(graph, node, 2).shape[1].value;
  parts.weight_rows = weight[0].value / parts.experts;
  parts.shared = OperandType(graph, node, 0).shape[1] == weight[1];
  parts.epilogue = *EpilogueOf(node);
  parts.columns = parts.epilogue == MatmulEpilogue::kStore
                      ? parts.weight_rows
                      : parts.weight_rows / 2;
  return parts;
}

int64_t ExpertsRead(const ExpertParts& parts, int64_t rows) {
  return std::min(parts.experts, CappedProduct(rows, parts.used));
}

const OpDef kTopKOp = {"top_k", true,      false,   nullptr,
                       false,   InferTopK, RunTopK, TopKOperations};
const OpDef kExpertMatmulOp = ExpertMatmulOp("expert_matmul", true);
const OpDef kFusedExpertMatmulOp = ExpertMatmulOp("fused_expert_matmul", false);
const OpDef kWeightedSumOp = {"weighted_sum", true,         false,
                              nullptr,        false,        InferWeightedSum,
                              RunWeightedSum, SumOperations};

}  // namespace weft
