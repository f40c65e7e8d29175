// all_gather.
#include "ops/collectives.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

absl::StatusOr<Types> InferAllGather(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantWhole(graph, node, 0));
  const ValueType& x = OperandType(graph, node, 0);
  const auto gather = node.attributes.As<AllGatherAttributes>();
  if (x.shape.rank() != 2 || !x.layout.empty() ||
      (x.dtype != DType::kF32 && x.dtype != DType::kQ8Rows) ||
      x.shape[1].symbol != Dim::kNumber) {
    return absl::InvalidArgumentError(absl::StrCat(
        "all_gather wants rows of f32 or rounded rows, found ", x.ToString()));
  }
  const int64_t pieces = gather.parts * gather.units;
  if (gather.rank >= gather.ranks || gather.units < gather.ranks ||
      gather.columns % pieces != 0 ||
      gather.columns / pieces % Info(x.dtype).block_elements != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("all_gather cannot cut ", gather.columns, " columns, ",
                     gather.parts, " parts of ", gather.units,
                     " units, for rank ", gather.rank, " of ", gather.ranks));
  }
  const int64_t want = gather.columns / gather.units *
                       ShareOf(gather.units, gather.rank, gather.ranks).size;
  if (x.shape[1].value != want) {
    return absl::InvalidArgumentError(
        absl::StrCat("all_gather: rank ", gather.rank, " has ", want, " of ",
                     gather.columns, " columns, found ", x.ToString()));
  }
  ValueType result = x;
  result.shape = Shape{x.shape[0], Dim::Number(gather.columns)};
  return Types{result};
}

// What other ranks have is not to be known here.
void RunAllGather(const ReferenceCall& call) {
  const auto gather = call.attributes<AllGatherAttributes>();
  const Share share = ShareOf(gather.units, gather.rank, gather.ranks);
  const int64_t unit = gather.columns / gather.parts / gather.units;
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    const std::vector<double> own = ReadRow(call, 0, r);
    std::vector<double> all(gather.columns,
                            std::numeric_limits<double>::quiet_NaN());
    const int64_t size = share.size * unit;
    for (int64_t part = 0; part < gather.parts; ++part) {
      const auto from = own.begin() + part * size;
      std::copy(from, from + size,
                all.begin() + (part * gather.units + share.begin) * unit);
    }
    WriteRow(call, 0, r, all);
  }
}

constexpr OperandSchema kOperands[] = {RowsOperand("x")};
constexpr AttributeSchema kAttributes[] = {
    Field<&AllGatherAttributes::rank>("rank", "the one whose graph it is")
        .From(0, kMostRanksOfPlan - 1),
    Field<&AllGatherAttributes::ranks>("ranks", "how many there are")
        .From(1, kMostRanksOfPlan),
    Field<&AllGatherAttributes::units>("units",
                                       "equal pieces of a part, of which each "
                                       "rank has some")
        .From(1, 1 << 24),
    Field<&AllGatherAttributes::parts>("parts", "equal parts of a row")
        .Optional()
        .From(1, 1 << 16),
    Field<&AllGatherAttributes::columns>("columns", "of the result")
        .From(1, 1 << 28)};

constexpr OpDef AllGather() {
  OpDef op;
  op.name = "all_gather";
  op.meaning = "[M,C]: the columns that all ranks have of each row of x";
  op.operands = kOperands;
  op.attributes = kAttributes;
  op.made_of = "a value that was made in parts, each on a rank";
  op.infer = InferAllGather;
  op.reference = RunAllGather;
  return op;
}

}  // namespace

int64_t GatheredRowBytes(const Graph& graph, const Node& node, int64_t rank) {
  const auto gather = node.attributes.As<AllGatherAttributes>();
  const int64_t columns = gather.columns / gather.units *
                          ShareOf(gather.units, rank, gather.ranks).size;
  return RowBytes(graph.value(node.inputs[0]).type.dtype, columns);
}

absl::Span<const AttributeSchema> AllGatherAttributes::Schema() {
  return kAttributes;
}

constexpr OpDef kAllGatherOp = AllGather();

}  // namespace weft
