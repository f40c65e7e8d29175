#include "ops/build.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/op_table.h"

namespace weft {

ValueId GraphBuilder::Node(const OpDef& op, std::vector<ValueId> inputs,
                           Attributes attributes) {
  // An operand that could not be made has its error told elsewhere.
  if (!status_.ok() || std::count(inputs.begin(), inputs.end(), kNone) > 0) {
    return kNone;
  }
  weft::Node node(op, std::move(inputs), std::move(attributes), name_);
  absl::StatusOr<std::vector<ValueType>> types = ResultTypes(graph_, node);
  if (!types.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat(
        "cannot build the graph: ", name_, ": ", types.status().message()));
    return kNone;
  }
  const NodeId id = graph_.AddNode(std::move(node), *std::move(types));
  return graph_.node(id).outputs[0];
}

ValueId GraphBuilder::Embed(ValueId ids, ValueId table) {
  return Node(kEmbedOp, {ids, table});
}

ValueId GraphBuilder::RmsNorm(ValueId x, ValueId weight, double eps,
                              int64_t heads) {
  std::vector<ValueId> inputs = {x};
  if (weight != kNone) inputs.push_back(weight);
  return Node(kRmsNormOp, std::move(inputs), NormAttributes{eps, heads});
}

ValueId GraphBuilder::LayerNorm(ValueId x, ValueId weight, ValueId bias,
                                double eps, int64_t heads) {
  std::vector<ValueId> inputs = {x, weight};
  if (bias != kNone) inputs.push_back(bias);
  return Node(kLayerNormOp, std::move(inputs), NormAttributes{eps, heads});
}

ValueId GraphBuilder::Matmul(ValueId x, ValueId weight) {
  return Node(kMatmulOp, {x, weight});
}

ValueId GraphBuilder::ConcatRows(std::vector<ValueId> weights) {
  return Node(kConcatRowsOp, std::move(weights));
}

ValueId GraphBuilder::Add(ValueId a, ValueId b) { return Node(kAddOp, {a, b}); }

ValueId GraphBuilder::Mul(ValueId a, ValueId b) { return Node(kMulOp, {a, b}); }

ValueId GraphBuilder::Scale(ValueId x, double factor) {
  return Node(kScaleOp, {x}, ScaleAttributes{factor});
}

ValueId GraphBuilder::Softcap(ValueId x, double cap) {
  return Node(kSoftcapOp, {x}, SoftcapAttributes{cap});
}

ValueId GraphBuilder::Silu(ValueId x) { return Node(kSiluOp, {x}); }

ValueId GraphBuilder::Gelu(ValueId x, GeluApproximation approximation) {
  return Node(kGeluOp, {x}, GeluAttributes{approximation});
}

ValueId GraphBuilder::Rope(ValueId x, ValueId positions,
                           const RopeOptions& options) {
  std::vector<ValueId> inputs = {x, positions};
  if (options.factors != kNone) inputs.push_back(options.factors);
  return Node(kRopeOp, std::move(inputs), RopeAttributes(options));
}

ValueId GraphBuilder::KvWrite(ValueId state, ValueId x, ValueId positions,
                              ValueId sequence) {
  return Node(kKvWriteOp, {state, x, positions, sequence});
}

ValueId GraphBuilder::AttentionScores(ValueId q, ValueId keys,
                                      ValueId positions, ValueId sequence,
                                      const AttentionOptions& options,
                                      ValueId own_positions) {
  std::vector<ValueId> inputs = {q, keys, positions, sequence};
  if (own_positions != kNone) inputs.push_back(own_positions);
  return Node(kAttentionScoresOp, std::move(inputs), options);
}

ValueId GraphBuilder::Softmax(ValueId x, ValueId sinks) {
  std::vector<ValueId> inputs = {x};
  if (sinks != kNone) inputs.push_back(sinks);
  return Node(kSoftmaxOp, std::move(inputs));
}

ValueId GraphBuilder::AttentionValues(ValueId probabilities, ValueId values,
                                      ValueId positions, ValueId sequence,
                                      int64_t value_dim) {
  return Node(kAttentionValuesOp, {probabilities, values, positions, sequence},
              ValuesAttributes{value_dim});
}

ValueId GraphBuilder::HeadMatmul(ValueId x, ValueId weight, int64_t heads) {
  return Node(kHeadMatmulOp, {x, weight}, HeadAttributes{heads});
}

ValueId GraphBuilder::ConcatHeads(ValueId a, ValueId b, int64_t heads) {
  return Node(kConcatHeadsOp, {a, b}, HeadAttributes{heads});
}

ValueId GraphBuilder::TakeRows(ValueId x, ValueId rows) {
  return Node(kTakeRowsOp, {x, rows});
}

ValueId GraphBuilder::MeanRows(ValueId x, ValueId sequence, ValueId rows) {
  return Node(kMeanRowsOp, {x, sequence, rows});
}

ValueId GraphBuilder::Slice(ValueId x, int64_t begin, int64_t size) {
  return Node(kSliceOp, {x}, SliceAttributes{begin, size});
}

ValueId GraphBuilder::Sigmoid(ValueId x) { return Node(kSigmoidOp, {x}); }

ValueId GraphBuilder::SliceRows(ValueId weight, int64_t parts, int64_t begin,
                                int64_t size) {
  return Node(kSliceRowsOp, {weight}, SliceRowsAttributes{parts, begin, size});
}

ValueId GraphBuilder::TransposeRows(ValueId weight, int64_t parts,
                                    int64_t begin, int64_t size) {
  return Node(kTransposeRowsOp, {weight},
              SliceRowsAttributes{parts, begin, size});
}

ValueId GraphBuilder::ExpertAdd(ValueId x, ValueId bias, ValueId ids,
                                int64_t experts) {
  return Node(kExpertAddOp, {x, bias, ids}, ExpertMatmulAttributes{experts});
}

ValueId GraphBuilder::ExpertMul(ValueId x, ValueId weight, ValueId ids,
                                int64_t experts) {
  return Node(kExpertMulOp, {x, weight, ids}, ExpertMatmulAttributes{experts});
}

Chosen GraphBuilder::TopK(ValueId x, ValueId bias,
                          const TopKAttributes& options) {
  std::vector<ValueId> inputs = {x};
  if (bias != kNone) inputs.push_back(bias);
  const ValueId ids = Node(kTopKOp, std::move(inputs), options);
  if (ids == kNone) return {};
  return {ids, graph_.Producer(ids)->outputs[1]};
}

ValueId GraphBuilder::ExpertMatmul(ValueId x, ValueId weight, ValueId ids,
                                   int64_t experts) {
  return Node(kExpertMatmulOp, {x, weight, ids},
              ExpertMatmulAttributes{experts});
}

ValueId GraphBuilder::WeightedSum(ValueId x, ValueId weights) {
  return Node(kWeightedSumOp, {x, weights});
}

ValueId GraphBuilder::Softplus(ValueId x) { return Node(kSoftplusOp, {x}); }

ValueId GraphBuilder::Relu(ValueId x) { return Node(kReluOp, {x}); }

ValueId GraphBuilder::L2Norm(ValueId x, double eps, int64_t heads) {
  return Node(kL2NormOp, {x}, NormAttributes{eps, heads});
}

Stepped GraphBuilder::Step(const OpDef& op, std::vector<ValueId> inputs,
                           Attributes attributes) {
  const ValueId state = Node(op, std::move(inputs), std::move(attributes));
  if (state == kNone) return {};
  return {state, graph_.Producer(state)->outputs[1]};
}

Stepped GraphBuilder::ShortConv(ValueId window, ValueId x, ValueId taps,
                                ValueId bias, const RowsOf& rows) {
  std::vector<ValueId> inputs = {window, x, taps, rows.positions,
                                 rows.sequence};
  if (bias != kNone) inputs.push_back(bias);
  return Step(kShortConvOp, std::move(inputs), ShortConvAttributes());
}

Stepped GraphBuilder::DeltaRule(ValueId matrices, ValueId q, ValueId k,
                                ValueId v, ValueId decay, ValueId beta,
                                const RowsOf& rows,
                                const DeltaRuleAttributes& attributes) {
  return Step(kDeltaRuleOp,
              {matrices, q, k, v, decay, beta, rows.positions, rows.sequence},
              attributes);
}

Stepped GraphBuilder::SelectiveScan(ValueId matrices, ValueId x, ValueId b,
                                    ValueId c, ValueId dt, ValueId a, ValueId d,
                                    const RowsOf& rows) {
  return Step(kSelectiveScanOp,
              {matrices, x, b, c, dt, a, d, rows.positions, rows.sequence});
}

}  // namespace weft
