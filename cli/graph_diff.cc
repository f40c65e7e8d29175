#include "cli/graph_diff.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/line_diff.h"
#include "graph/dtype.h"
#include "graph/text_format.h"

namespace weft {
namespace {

// Op, name, and which of those that have both.
using NodeKey = std::tuple<std::string, std::string, int>;

std::map<NodeKey, NodeId> NodesByKey(const Graph& graph) {
  std::map<NodeKey, NodeId> nodes;
  std::map<std::pair<std::string, std::string>, int> seen;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    nodes[{node.op->name, node.name, seen[{node.op->name, node.name}]++}] = id;
  }
  return nodes;
}

// Numbers of the values of `after`, by the rules of the header.
std::vector<int> CommonNumbers(const Graph& before,
                               const std::vector<int>& before_numbers,
                               const Graph& after) {
  std::vector<int> numbers(after.value_count(), -1);
  std::vector<bool> taken(before.value_count(), false);
  const auto match = [&](ValueId a, ValueId b) {
    if (after.IsWeight(a) || before.IsWeight(b) || numbers[a] >= 0 ||
        taken[b]) {
      return;
    }
    numbers[a] = before_numbers[b];
    taken[b] = true;
  };
  for (ValueId id = 0; id < after.value_count(); ++id) {
    const Value& value = after.value(id);
    if (value.kind != ValueKind::kInput && value.kind != ValueKind::kState) {
      continue;
    }
    const ValueId same = before.FindValue(value.name);
    if (same != kNone) match(id, same);
  }
  const std::map<NodeKey, NodeId> before_nodes = NodesByKey(before);
  std::vector<std::pair<const Node*, const Node*>> pairs;
  for (const auto& [key, id] : NodesByKey(after)) {
    const auto it = before_nodes.find(key);
    if (it == before_nodes.end()) continue;
    const Node& a = after.node(id);
    const Node& b = before.node(it->second);
    pairs.push_back({&a, &b});
    for (size_t i = 0; i < std::min(a.outputs.size(), b.outputs.size()); ++i) {
      match(a.outputs[i], b.outputs[i]);
    }
  }
  for (const auto& [a, b] : pairs) {
    if (a->inputs.size() != b->inputs.size()) continue;
    for (size_t i = 0; i < a->inputs.size(); ++i) {
      match(a->inputs[i], b->inputs[i]);
    }
  }
  int next =
      1 + *std::max_element(before_numbers.begin(), before_numbers.end());
  const std::vector<int> own = NumberValues(after);
  std::vector<ValueId> fresh;
  for (ValueId id = 0; id < after.value_count(); ++id) {
    if (own[id] >= 0 && numbers[id] < 0) fresh.push_back(id);
  }
  std::sort(fresh.begin(), fresh.end(),
            [&](ValueId x, ValueId y) { return own[x] < own[y]; });
  for (ValueId id : fresh) numbers[id] = next++;
  return numbers;
}

using Lines = std::vector<std::string>;

Lines ModelLines(const Plan& plan) {
  const ModelInfo& model = plan.model;
  Lines lines = {absl::StrCat("architecture ", model.architecture),
                 absl::StrCat("name ", model.name),
                 absl::StrCat("parameters ", model.parameters),
                 absl::StrCat("context_length ", model.context_length),
                 absl::StrCat("vocabulary ", model.vocabulary_size),
                 absl::StrCat("gives ", model.output())};
  for (const auto& [name, values] : model.hyper_parameters) {
    lines.push_back(absl::StrCat(name, " ", absl::StrJoin(values, ", ")));
  }
  if (plan.source) {
    lines.push_back(
        absl::StrCat("xxh3 of the file's tensors ",
                     absl::Hex(plan.source->tensors_xxh3, absl::kZeroPad16)));
  }
  return lines;
}

Lines OptionLines(const Plan& plan) {
  const CompileOptions& options = plan.options;
  return {
      absl::StrCat("isa ", Name(options.isa)),
      absl::StrCat("f16-compute ",
                   options.f16_compute == F16Compute::kF32 ? "f32" : "bf16"),
      absl::StrCat("planner ", Name(options.planner)),
      absl::StrCat("disabled passes ",
                   absl::StrJoin(options.disabled_passes, ", ")),
      absl::StrCat("graphs of tokens ", absl::StrJoin(options.buckets, ", ")),
      absl::StrCat("context ", plan.context()),
      absl::StrCat("weights ",
                   plan.weight_checksums.empty() ? "reference" : "packed")};
}

Lines PassLines(const Plan& plan) {
  Lines lines;
  for (const PassRecord& pass : plan.passes) {
    lines.push_back(absl::StrCat(pass.name, " ", pass.nodes_before, " -> ",
                                 pass.nodes_after, " nodes"));
  }
  return lines;
}

Lines TensorLines(const Plan& plan) {
  Lines lines;
  for (const TensorInfo& tensor : plan.model.tensors) {
    lines.push_back(absl::StrCat(tensor.name, " ", UpperName(tensor.type), "[",
                                 absl::StrJoin(tensor.shape, ","), "]"));
  }
  return lines;
}

Lines WeightLines(const Plan& plan) {
  Lines lines;
  for (const auto& [name, checksum] : plan.weight_checksums) {
    lines.push_back(
        absl::StrCat(name, " ", absl::Hex(checksum, absl::kZeroPad16)));
  }
  return lines;
}

Lines KernelLines(const Plan& plan, int64_t tokens) {
  Lines lines;
  for (const Graph& graph : plan.buckets) {
    if (tokens != 0 && graph.bounds.tokens != tokens) continue;
    std::map<std::string, int> kernels;
    for (const NodeId id : graph.order()) {
      const std::string& kernel = graph.node(id).kernel;
      if (!kernel.empty()) ++kernels[kernel];
    }
    for (const auto& [kernel, nodes] : kernels) {
      lines.push_back(
          absl::StrCat(graph.bounds.tokens, " tokens: ", kernel, " x ", nodes));
    }
  }
  return lines;
}

}  // namespace

std::string DiffGraphs(const Graph& before, const Graph& after,
                       absl::string_view before_label,
                       absl::string_view after_label, const NodeFilter& show) {
  const std::vector<int> before_numbers = NumberValues(before);
  const std::vector<int> after_numbers =
      CommonNumbers(before, before_numbers, after);
  const std::string a = Dump(before, {show, &before_numbers});
  const std::string b = Dump(after, {show, &after_numbers});
  return UnifiedDiff(absl::StrSplit(a, '\n', absl::SkipEmpty()),
                     absl::StrSplit(b, '\n', absl::SkipEmpty()), before_label,
                     after_label);
}

std::string DiffPlans(const Plan& before, const Plan& after,
                      absl::string_view before_label,
                      absl::string_view after_label, int64_t tokens,
                      const NodeFilter& show) {
  std::string text;
  const auto add = [&](absl::string_view what, const Lines& a, const Lines& b) {
    text += UnifiedDiff({a.begin(), a.end()}, {b.begin(), b.end()},
                        absl::StrCat(before_label, ": ", what),
                        absl::StrCat(after_label, ": ", what));
  };
  add("model", ModelLines(before), ModelLines(after));
  add("options", OptionLines(before), OptionLines(after));
  add("passes", PassLines(before), PassLines(after));
  add("tensors", TensorLines(before), TensorLines(after));
  // Only plans that hold their weights know of their content.
  if (!before.weight_checksums.empty() && !after.weight_checksums.empty()) {
    add("weights", WeightLines(before), WeightLines(after));
  }
  add("kernels", KernelLines(before, tokens), KernelLines(after, tokens));
  for (const Graph& a : before.buckets) {
    if (tokens != 0 && a.bounds.tokens != tokens) continue;
    for (const Graph& b : after.buckets) {
      if (b.bounds.tokens != a.bounds.tokens) continue;
      const std::string what =
          absl::StrCat(": graph of ", a.bounds.tokens,
                       a.bounds.tokens == 1 ? " token" : " tokens");
      text += DiffGraphs(a, b, absl::StrCat(before_label, what),
                         absl::StrCat(after_label, what), show);
    }
  }
  return text;
}

}  // namespace weft
