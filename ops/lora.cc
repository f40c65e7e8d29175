// lora_add: adapters beside a product.
#include "ops/lora.h"

#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

constexpr OperandSchema kOperands[] = {RowsOperand("y"), RowsOperand("x"),
                                       WeightOperand("a"), WeightOperand("b"),
                                       RowsOperand("scales")};

constexpr AttributeSchema kAttributes[] = {Field<&LoraAddAttributes::ranks>(
    "ranks", "rows of a and b of each adapter, \"8,0,16\"")};

absl::Status WantRows(const Graph& graph, const Node& node, int i, int64_t rows,
                      Dim columns) {
  WEFT_RETURN_IF_ERROR(WantWhole(graph, node, i));
  const ValueType& type = OperandType(graph, node, i);
  const ValueType want = FloatType({Dim::Number(rows), columns});
  if (type == want) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("lora_add ", kOperands[i].name, " is ", type.ToString(),
                   ", want ", want.ToString(), " for ranks=\"",
                   node.attributes.As<LoraAddAttributes>().ranks, "\""));
}

absl::StatusOr<Types> InferLoraAdd(const Graph& graph, const Node& node) {
  for (int i : {0, 1, 4}) {
    WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, i));
    if (OperandType(graph, node, i).shape.rank() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("lora_add wants matrices of two dimensions, found ",
                       OperandType(graph, node, i).ToString()));
    }
  }
  WEFT_ASSIGN_OR_RETURN(
      const std::vector<int64_t> ranks,
      ParseLoraRanks(node.attributes.As<LoraAddAttributes>().ranks));
  const int64_t all = std::accumulate(ranks.begin(), ranks.end(), int64_t{0});
  const Shape& y = OperandType(graph, node, 0).shape;
  const Shape& x = OperandType(graph, node, 1).shape;
  const ValueType& scales = OperandType(graph, node, 4);
  const ValueType want_scales =
      FloatType({y[0], Dim::Number(static_cast<int64_t>(ranks.size()))});
  if (x[0] != y[0] || !(scales == want_scales)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "lora_add cannot add ", OperandType(graph, node, 1).ToString(),
        " with scales ", scales.ToString(), " to ",
        OperandType(graph, node, 0).ToString(), ": want scales ",
        want_scales.ToString()));
  }
  WEFT_RETURN_IF_ERROR(WantRows(graph, node, 2, all, x[1]));
  WEFT_RETURN_IF_ERROR(WantRows(graph, node, 3, all, y[1]));
  return Types{FloatType(y)};
}

void RunLoraAdd(const ReferenceCall& call) {
  const std::vector<int64_t> ranks =
      *ParseLoraRanks(call.attributes<LoraAddAttributes>().ranks);
  for (int64_t row = 0; row < call.outputs[0].rows; ++row) {
    std::vector<double> y = ReadRow(call, 0, row);
    const std::vector<double> x = ReadRow(call, 1, row);
    const std::vector<double> scales = ReadRow(call, 4, row);
    int64_t begin = 0;
    for (size_t i = 0; i < ranks.size(); begin += ranks[i++]) {
      if (ranks[i] == 0 || scales[i] == 0) continue;
      std::vector<double> sum(y.size());
      for (int64_t r = begin; r < begin + ranks[i]; ++r) {
        const std::vector<double> a = ReadRow(call, 2, r);
        const std::vector<double> b = ReadRow(call, 3, r);
        double product = 0;
        for (size_t k = 0; k < x.size(); ++k) product += x[k] * a[k];
        for (size_t n = 0; n < y.size(); ++n) sum[n] += product * b[n];
      }
      for (size_t n = 0; n < y.size(); ++n) y[n] += scales[i] * sum[n];
    }
    WriteRow(call, 0, row, y);
  }
}

// Those of all adapters: who has which is known only in the step.
int64_t LoraOperations(const Graph& graph, const Node& node,
                       const Bounds& bounds) {
  const Shape& y = OperandType(graph, node, 0).shape;
  const Shape& x = OperandType(graph, node, 1).shape;
  const int64_t ranks = OperandType(graph, node, 2).shape[0].value;
  return CappedProduct(2 * ranks, x.Elements(bounds) + y.Elements(bounds));
}

constexpr OpDef LoraAdd() {
  OpDef op;
  op.name = "lora_add";
  op.meaning =
      "y + sum of scales[i] (x a^T) b over the rows of a and b that are "
      "adapter i's; where scales[i] is 0, nothing of it";
  op.operands = kOperands;
  op.attributes = kAttributes;
  op.made_of = "adapters beside a matmul";
  op.in_place_operand = FirstOperand;
  op.infer = InferLoraAdd;
  op.reference = RunLoraAdd;
  op.operations = LoraOperations;
  return op;
}

}  // namespace

std::string LoraAName(absl::string_view weight, int64_t adapter) {
  return absl::StrCat(weight, ".lora_a.", adapter);
}

std::string LoraBName(absl::string_view weight, int64_t adapter) {
  return absl::StrCat(weight, ".lora_b.", adapter);
}

absl::StatusOr<std::vector<int64_t>> ParseLoraRanks(absl::string_view text) {
  std::vector<int64_t> ranks;
  int64_t all = 0;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t rank;
    if (!absl::SimpleAtoi(part, &rank) || rank < 0 || rank > kMostRanks - all ||
        static_cast<int64_t>(ranks.size()) == kMostAdapters) {
      return absl::InvalidArgumentError(absl::StrCat(
          "lora_add ranks=\"", text, "\": want 1 to ", kMostAdapters,
          " numbers from 0 on, of at most ", kMostRanks, " together"));
    }
    all += rank;
    ranks.push_back(rank);
  }
  if (all == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("lora_add ranks=\"", text, "\": want one above 0"));
  }
  return ranks;
}

std::string LoraRanksText(const std::vector<int64_t>& ranks) {
  return absl::StrJoin(ranks, ",");
}

absl::Span<const AttributeSchema> LoraAddAttributes::Schema() {
  return kAttributes;
}

constexpr OpDef kLoraAddOp = LoraAdd();

}  // namespace weft
