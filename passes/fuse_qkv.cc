// Products of one operand that feed attention, as one product.
//
//   %4 = matmul(%3, $q)                 %w = concat_rows($q, $k, $v)
//   %5 = matmul(%3, $k)                 %7 = matmul(%3, %w)
//   %6 = matmul(%3, $v)         ->      %4 = slice(%7) begin=0
//                                       %5 = slice(%7) begin=...
//                                       %6 = slice(%7) begin=...
//
// Biases (add with a vector) are joined likewise. Weights of another type stay
// alone: files of mixed quantisation often keep V in a finer one.
#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/match.h"
#include "ops/fused_matmul.h"
#include "passes/insert_before.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace weft {
namespace {

struct Branch {
  NodeId product;
  ValueId weight;
  ValueId bias;  // kNone: no bias
  ValueId result;
};

// Whether those ops alone read the value. They take slices; other readers may
// want rows without gaps, and a graph output cannot be a slice.
bool FeedsAttention(const Graph& graph, ValueId value) {
  const std::vector<NodeId> users = graph.Users(value);
  return !users.empty() && !graph.IsOutput(value) &&
         std::all_of(users.begin(), users.end(), [&](NodeId user) {
           const std::string& op = graph.node(user).op;
           return op == "rope" || op == "kv_write" || op == "rope_kv_write" ||
                  op == "attention" || op == "attention_scores";
         });
}

void Fuse(Graph& graph, const std::vector<Branch>& branches) {
  const NodeId first = branches[0].product;
  const ValueId x = graph.node(first).inputs[0];
  std::string name = graph.node(first).name;
  if (absl::EndsWith(name, "_q")) name += branches.size() > 2 ? "kv" : "k";
  Node weights{"concat_rows", {}, {}, {}, name};
  Node biases{"concat_rows", {}, {}, {}, name + ".bias"};
  for (const Branch& branch : branches) {
    weights.inputs.push_back(branch.weight);
    biases.inputs.push_back(branch.bias);
  }
  const ValueId weight = InsertBefore(graph, first, weights);
  Node product{"matmul", {x, weight}, {}, {}, name};
  if (branches[0].bias != kNone) {
    const ValueId bias = InsertBefore(graph, first, biases);
    SetParts(PartsOf(product), kNone, bias, kNone, &product);
  }
  const ValueId joined = InsertBefore(graph, first, product);
  int64_t begin = 0;
  for (const Branch& branch : branches) {
    const int64_t size = graph.value(branch.result).type.shape[1].value;
    Node slice{"slice", {joined}, {}, {}, graph.node(branch.product).name};
    slice.attributes.Set("begin", begin);
    slice.attributes.Set("size", size);
    graph.ReplaceUses(branch.result, InsertBefore(graph, first, slice));
    begin += size;
  }
}

}  // namespace

absl::Status FuseQkv(Graph& graph, const PassOptions&) {
  ValueId x;
  Branch branch;
  const Pattern plain =
      Op("matmul", {Any(&x), Once(Weight(&branch.weight))}, &branch.product);
  const Pattern biased = Op("add", {Once(plain), Vector(&branch.bias)});
  // Operand, weight type, with a bias or without: what branches must share.
  std::map<std::tuple<ValueId, DType, bool>, std::vector<Branch>> groups;
  for (NodeId id : graph.order()) {
    const bool has_bias = Match(graph, id, biased);
    if (!has_bias && !Match(graph, id, plain)) continue;
    if (!has_bias) branch.bias = kNone;
    branch.result = graph.node(id).outputs[0];
    const ValueType& weight = graph.value(branch.weight).type;
    if (weight.layout.empty() && FeedsAttention(graph, branch.result) &&
        (!has_bias || graph.IsWeight(branch.bias))) {
      groups[{x, weight.dtype, has_bias}].push_back(branch);
    }
  }
  for (const auto& [shared, branches] : groups) {
    if (branches.size() > 1) Fuse(graph, branches);
  }
  graph.EraseDead();
  return absl::OkStatus();
}

}  // namespace weft
