#include "runtime/plan/streamed_experts.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "ops/experts.h"
#include "ops/kernels/kernel_table.h"
#include "ops/storage.h"
#include "ops/weight_layout.h"
#include "passes/lifetimes.h"

namespace weft {
namespace {

constexpr int64_t kLeastSlots = 2;

// Of the weight of such a product, or 0 where experts are not apart in it.
int64_t ExpertBytes(const Graph& graph, const Node& node) {
  const ExpertParts parts = ExpertPartsOf(graph, node);
  const ValueType& type = graph.value(node.inputs[1]).type;
  const WeightLayout* layout = FindWeightLayout(type.layout);
  if (layout == nullptr) return 0;
  const int64_t bytes =
      layout->bytes(type.dtype, parts.weight_rows, type.shape[1].value);
  const bool apart = bytes * parts.experts == StorageBytes(type, graph.bounds);
  return apart ? bytes : 0;
}

bool CanStream(const Graph& graph, const Node& node) {
  const KernelEntry* entry = FindKernel(node.kernel);
  return IsExpertMatmul(node) && entry != nullptr &&
         entry->takes_experts_apart() && ExpertBytes(graph, node) > 0;
}

// Names of weights that are read by anything but a product that could stream
// them.
std::set<std::string> ReadOtherwise(const Plan& plan) {
  std::set<std::string> names;
  const auto add = [&](const std::vector<Graph>& graphs, bool may_stream) {
    for (const Graph& graph : graphs) {
      for (NodeId id : graph.order()) {
        const Node& node = graph.node(id);
        const bool streams = may_stream && CanStream(graph, node);
        for (size_t i = 0; i < node.inputs.size(); ++i) {
          if (streams && i == 1) continue;
          names.insert(graph.value(RootOf(graph, node.inputs[i]).root).name);
        }
      }
    }
  };
  add(plan.buckets, true);
  add(plan.next_token_buckets, false);
  return names;
}

// Slots to groups, so that each has about the same share of its experts.
void TakeSlots(int64_t bytes, std::vector<ExpertGroup>* groups) {
  while (true) {
    ExpertGroup* poorest = nullptr;
    for (ExpertGroup& group : *groups) {
      if (group.slots == group.experts || group.SlotBytes() > bytes) continue;
      if (poorest == nullptr ||
          group.slots * poorest->experts < poorest->slots * group.experts) {
        poorest = &group;
      }
    }
    if (poorest == nullptr) return;
    ++poorest->slots;
    bytes -= poorest->SlotBytes();
  }
}

double BytesOfExpert(const ExpertGroup& group) {
  double bytes = 0;
  for (const ExpertGroup::Weight& weight : group.weights) {
    bytes += static_cast<double>(weight.expert_bytes);
  }
  return bytes;
}

}  // namespace

std::map<std::string, int64_t> ExpertWeights(const Plan& plan) {
  std::map<std::string, int64_t> weights;
  for (const Graph* graph : plan.AllGraphs()) {
    for (NodeId id : graph->order()) {
      const Node& node = graph->node(id);
      if (!IsExpertMatmul(node) || !graph->IsWeight(node.inputs[1])) continue;
      if (ExpertBytes(*graph, node) == 0) continue;
      weights[graph->value(node.inputs[1]).name] =
          ExpertPartsOf(*graph, node).experts;
    }
  }
  return weights;
}

std::vector<ExpertGroup> StreamableExperts(const Plan& plan) {
  std::set<std::string> taken = ReadOtherwise(plan);
  std::vector<ExpertGroup> groups;
  std::map<ValueId, size_t> group_of;  // the router's choice
  const Graph& graph = plan.buckets.front();
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!CanStream(graph, node) ||
        !taken.insert(graph.value(node.inputs[1]).name).second) {
      continue;
    }
    const ExpertParts parts = ExpertPartsOf(graph, node);
    const auto [it, added] = group_of.emplace(node.inputs[2], groups.size());
    if (added) groups.push_back({{}, parts.experts, parts.used, 0});
    groups[it->second].weights.push_back(
        {graph.value(node.inputs[1]).name, ExpertBytes(graph, node)});
  }
  return groups;
}

absl::Status StreamWithin(int64_t budget, const std::string& path,
                          const std::function<int64_t()>& peak, Plan* plan) {
  plan->streamed.clear();
  const int64_t whole = peak();
  if (whole <= budget) return absl::OkStatus();
  const auto error = [&](const std::string& what) {
    return absl::ResourceExhaustedError(
        absl::StrCat("memory budget is too small: ", path, ": ", what));
  };
  std::vector<ExpertGroup> groups = StreamableExperts(*plan);
  if (groups.empty()) {
    return error(absl::StrCat(
        "the plan takes ", (whole >> 20) + 1,
        " MiB and has no experts that could stay in its file: give at least "
        "that, or choose a smaller --context or --kv-type"));
  }
  for (ExpertGroup& group : groups) {
    group.slots = std::min(group.experts, kLeastSlots);
  }
  plan->streamed = std::move(groups);
  const int64_t least = peak();
  if (least > budget) {
    plan->streamed.clear();
    return error(absl::StrCat(
        budget >> 20, " MiB: with two experts of each block the plan takes ",
        (least >> 20) + 1,
        " MiB: give at least that, or choose a smaller --context or "
        "--kv-type"));
  }
  TakeSlots(budget - least, &plan->streamed);
  return absl::OkStatus();
}

absl::Status CheckStreams(const Plan& plan, const std::string& path) {
  for (const ExpertGroup& group : plan.streamed) {
    for (const ExpertGroup::Weight& weight : group.weights) {
      if (plan.weight_checksums.count(weight.name) == 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "experts cannot be streamed: ", path,
            ": its weights are not yet as kernels read them: compile it (weft "
            "compile ",
            path, " -o PLAN.weft) and give the plan"));
      }
      const auto it = plan.expert_checksums.find(weight.name);
      if (it == plan.expert_checksums.end() ||
          static_cast<int64_t>(it->second.size()) != group.experts) {
        return absl::InvalidArgumentError(absl::StrCat(
            "experts cannot be streamed: ", path,
            ": the plan has no checksums of experts: compile it again"));
      }
    }
  }
  return absl::OkStatus();
}

double ExpertBytesPerToken(const std::vector<ExpertGroup>& groups) {
  double bytes = 0;
  for (const ExpertGroup& group : groups) {
    const double missing = static_cast<double>(group.experts - group.slots) /
                           static_cast<double>(group.experts);
    bytes += missing * static_cast<double>(group.used) * BytesOfExpert(group);
  }
  return bytes;
}

double ExpertBytesPerFullStep(const std::vector<ExpertGroup>& groups) {
  double bytes = 0;
  for (const ExpertGroup& group : groups) {
    bytes +=
        static_cast<double>(group.experts - group.slots) * BytesOfExpert(group);
  }
  return bytes;
}

}  // namespace weft
