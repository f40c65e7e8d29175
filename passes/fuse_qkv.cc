// Products of one operand that feed attention or a recurrence, as one product.
//
//   %4 = matmul(%3, $q)                 %w = concat_rows($q, $k, $v)
//   %5 = matmul(%3, $k)                 %7 = matmul(%3, %w)
//   %6 = matmul(%3, $v)         ->      %4 = slice(%7) begin=0
//                                       %5 = slice(%7) begin=...
//                                       %6 = slice(%7) begin=...
//
// Biases (add with a vector) are joined likewise. Weights of another type stay
// alone: files of mixed quantisation often keep V in a finer one. A weight may
// be some rows of one (slice_rows): latent attention has products with parts of
// matrices.
#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/match.h"
#include "ops/ops.h"
#include "passes/join_products.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace weft {
namespace {

bool IsRead(const Graph& graph, NodeId user) {
  const Node& node = graph.node(user);
  if (node.Is(kQuantizeRowsOp)) {
    const NodeId reader = graph.OnlyUser(node.outputs[0]);
    return reader != kNone && graph.node(reader).Is(kHeadMatmulOp);
  }
  for (const OpSchema* op :
       {&kRopeOp, &kKvWriteOp, &kRopeKvWriteOp, &kAttentionOp,
        &kAttentionScoresOp, &kRmsNormOp, &kRmsNormGateOp, &kLayerNormOp,
        &kHeadMatmulOp, &kConcatHeadsOp, &kShortConvOp, &kDeltaRuleOp,
        &kSelectiveScanOp, &kSigmoidOp, &kSoftplusOp, &kLoraAddOp}) {
    if (node.Is(*op)) return true;
  }
  return false;
}

// Whether those ops alone read the value, or what stands on the way to them.
// They take slices; other readers may want rows without gaps, and a graph
// output cannot be a slice.
bool FeedsAttention(const Graph& graph, ValueId value) {
  const std::vector<NodeId> users = graph.Users(value);
  return !users.empty() && !graph.IsOutput(value) &&
         std::all_of(users.begin(), users.end(),
                     [&](NodeId user) { return IsRead(graph, user); });
}

std::string JoinedName(const Graph& graph, const std::vector<Product>& parts) {
  const std::string& name = graph.node(parts[0].matmul).name;
  if (!absl::EndsWith(name, "_q")) return name;
  return name + (parts.size() > 2 ? "kv" : "k");
}

}  // namespace

absl::Status FuseQkv(Graph& graph, const PassOptions&) {
  ValueId x, weight;
  Product product;
  const Pattern plain =
      Op(kMatmulOp, {Any(&x), Once(Weight(&weight))}, &product.matmul);
  const Pattern of_rows =
      Op(kMatmulOp, {Any(&x), Once(Op(kSliceRowsOp, {Weight(&weight)}))},
         &product.matmul);
  const Pattern biased = Op(kAddOp, {Once(plain), Vector(&product.bias)});
  // Operand, weight type, with a bias or without: what they must share.
  std::map<std::tuple<ValueId, DType, bool>, std::vector<Product>> groups;
  for (NodeId id : graph.order()) {
    const bool has_bias = Match(graph, id, biased);
    if (!has_bias && !Match(graph, id, plain) && !Match(graph, id, of_rows)) {
      continue;
    }
    if (!has_bias) product.bias = kNone;
    product.result = graph.node(id).outputs[0];
    const ValueType& type = graph.value(weight).type;
    if (type.layout.empty() && FeedsAttention(graph, product.result) &&
        (!has_bias || graph.IsWeight(product.bias))) {
      groups[{x, type.dtype, has_bias}].push_back(product);
    }
  }
  for (const auto& [shared, parts] : groups) {
    if (parts.size() > 1) JoinProducts(graph, parts, JoinedName(graph, parts));
  }
  graph.EraseDead();
  return absl::OkStatus();
}

}  // namespace weft
