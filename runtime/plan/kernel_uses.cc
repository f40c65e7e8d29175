#include "runtime/plan/kernel_uses.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"

namespace weft {
namespace {

// Types and shapes alone: nodes that differ in nothing else are one kind.
KernelUse Describe(const Graph& graph, const Node& node) {
  KernelUse use;
  use.op = node.op->name;
  use.kernel = node.kernel;
  use.example = node.name;
  for (ValueId input : node.inputs) {
    const Value& value = graph.value(input);
    const bool matrix =
        value.kind == ValueKind::kWeight && value.type.shape.rank() == 2;
    if (matrix && use.weight.empty()) use.weight = value.type.ToString();
    if (value.kind != ValueKind::kWeight && use.input.empty()) {
      use.input = value.type.ToString();
    }
  }
  use.output = graph.value(node.outputs[0]).type.ToString();
  return use;
}

std::vector<std::pair<std::string, std::string>> Refused(
    const NodeView& view, const std::string& taken) {
  std::vector<std::pair<std::string, std::string>> refused;
  for (const auto& entry : AllKernels()) {
    if (entry->name() == taken) break;
    if (!entry->Computes(view.node)) continue;
    std::string why = WhyNot(*entry, view);
    if (why.empty()) why = "could compute it, but kernels were not chosen";
    refused.emplace_back(entry->name(), std::move(why));
  }
  return refused;
}

}  // namespace

std::vector<KernelUse> KernelUses(const Graph& graph,
                                  const CompileOptions& options,
                                  const Bounds& bounds) {
  std::vector<KernelUse> uses;
  std::map<std::string, size_t> known;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (OpOf(node).view) continue;
    KernelUse use = Describe(graph, node);
    const std::string key =
        absl::StrCat(use.op, " ", use.kernel, " ", use.weight, " ", use.input,
                     " ", use.output);
    const auto [it, is_new] = known.emplace(key, uses.size());
    if (is_new) {
      if (const KernelEntry* entry = FindKernel(use.kernel)) {
        use.summation = entry->summation();
      }
      use.refused = Refused({graph, node, {options.isa, options.f16_compute}},
                            use.kernel);
      uses.push_back(std::move(use));
    }
    KernelUse& all = uses[it->second];
    const Cost cost = NodeCost(graph, node, bounds);
    ++all.nodes;
    all.cost.bytes += cost.bytes;
    all.cost.operations += cost.operations;
  }
  return uses;
}

Cost StepCost(const Graph& graph, const Bounds& bounds) {
  Cost total;
  for (NodeId id : graph.order()) {
    const Cost cost = NodeCost(graph, graph.node(id), bounds);
    total.bytes += cost.bytes;
    total.operations += cost.operations;
  }
  return total;
}

}  // namespace weft
