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

#include "ops/fused_matmul.h"
#include "passes/pass.h"

namespace weft {
namespace {

struct Branch {
  NodeId matmul;
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

Branch BranchOf(const Graph& graph, NodeId matmul) {
  Branch branch = {matmul, kNone, graph.node(matmul).outputs[0]};
  const NodeId user = graph.OnlyUser(branch.result);
  if (user != kNone && graph.node(user).op == "add") {
    const ValueId other = graph.node(user).inputs[1];
    if (graph.node(user).inputs[0] == branch.result && graph.IsWeight(other) &&
        graph.value(other).type.shape.rank() == 1) {
      branch.bias = other;
      branch.result = graph.node(user).outputs[0];
    }
  }
  return branch;
}

void Fuse(Graph& graph, const std::vector<Branch>& branches) {
  const NodeId first = branches[0].matmul;
  std::string name = graph.node(first).name;
  if (name.size() > 2 && name.substr(name.size() - 2) == "_q") {
    name += branches.size() > 2 ? "kv" : "k";
  }
  std::vector<ValueId> weights, biases;
  int64_t rows = 0;
  for (const Branch& branch : branches) {
    weights.push_back(graph.node(branch.matmul).inputs[1]);
    biases.push_back(branch.bias);
    rows += graph.value(weights.back()).type.shape[0].value;
  }
  ValueType type = graph.value(weights[0]).type;
  type.shape = Shape{Dim::Number(rows), type.shape[1]};
  const NodeId join =
      graph.AddNode("concat_rows", std::move(weights), {type}, {}, name, first);
  ValueId bias = kNone;
  if (biases[0] != kNone) {
    const NodeId join_bias =
        graph.AddNode("concat_rows", std::move(biases),
                      {{DType::kF32, Shape{Dim::Number(rows)}, ""}}, {},
                      name + ".bias", first);
    bias = graph.node(join_bias).outputs[0];
  }
  const ValueId x = graph.node(first).inputs[0];
  const Dim row_count = graph.value(x).type.shape[0];
  const NodeId product =
      graph.AddNode("matmul", {x, graph.node(join).outputs[0]},
                    {{DType::kF32, Shape{row_count, Dim::Number(rows)}, ""}},
                    {}, name, first);
  if (bias != kNone) {
    MatmulParts parts = PartsOf(graph.node(product));
    SetParts(parts, kNone, bias, kNone, &graph.node(product));
  }
  int64_t begin = 0;
  for (const Branch& branch : branches) {
    const ValueType result = graph.value(branch.result).type;
    const int64_t size = result.shape[1].value;
    Attributes attributes;
    attributes.Set("begin", begin);
    attributes.Set("size", size);
    const NodeId slice = graph.AddNode(
        "slice", {graph.node(product).outputs[0]}, {result},
        std::move(attributes), graph.node(branch.matmul).name, first);
    graph.ReplaceUses(branch.result, graph.node(slice).outputs[0]);
    begin += size;
  }
}

}  // namespace

absl::Status FuseQkv(Graph& graph, const PassOptions&) {
  // Operand, weight type, with a bias or without: what branches must share.
  std::map<std::tuple<ValueId, DType, bool>, std::vector<Branch>> groups;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op != "matmul") continue;
    const ValueId weight = node.inputs[1];
    const Branch branch = BranchOf(graph, id);
    if (!graph.IsWeight(weight) || !graph.value(weight).type.layout.empty() ||
        graph.OnlyUser(weight) != id || !FeedsAttention(graph, branch.result)) {
      continue;
    }
    groups[{node.inputs[0], graph.value(weight).type.dtype,
            branch.bias != kNone}]
        .push_back(branch);
  }
  for (const auto& [shared, branches] : groups) {
    if (branches.size() > 1) Fuse(graph, branches);
  }
  graph.EraseDead();
  return absl::OkStatus();
}

}  // namespace weft
