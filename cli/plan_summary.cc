#include "cli/plan_summary.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/output.h"
#include "ops/op_table.h"
#include "runtime/plan/kernel_uses.h"
#include "runtime/plan/large_tables.h"
#include "runtime/plan/streamed_experts.h"
#include "text/printable.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

std::map<std::string, int> KernelsOf(const Graph& graph) {
  std::map<std::string, int> kernels;
  for (NodeId id : graph.order()) {
    const std::string kernel = graph.node(id).kernel;
    if (!kernel.empty()) ++kernels[kernel];
  }
  return kernels;
}

// What each kind of node runs on, bucket by bucket.
Json KernelChoices(const Plan& plan) {
  Json choices = Json::array();
  for (const Graph& graph : plan.buckets) {
    const Bounds bounds = {graph.bounds.tokens, 1, graph.bounds.tokens};
    for (const KernelUse& use : KernelUses(graph, plan.options, bounds)) {
      Json refused = Json::array();
      for (const auto& [kernel, why] : use.refused) {
        refused.push_back({{"kernel", kernel}, {"why", why}});
      }
      choices.push_back({{"tokens", graph.bounds.tokens},
                         {"op", use.op},
                         {"kernel", use.kernel},
                         {"weight", use.weight},
                         {"input", use.input},
                         {"output", use.output},
                         {"summation", use.summation},
                         {"nodes", use.nodes},
                         {"first_node", use.example},
                         {"bytes", use.cost.bytes},
                         {"operations", use.cost.operations},
                         {"refused", std::move(refused)}});
    }
  }
  return choices;
}

void PrintChoices(const Json& choices) {
  int64_t tokens = 0;
  for (const Json& c : choices) {
    if (c["tokens"] != tokens) {
      tokens = c["tokens"];
      std::cout << "\nkernels of a step of " << tokens
                << (tokens == 1 ? " token\n" : " tokens\n");
    }
    const int nodes = c["nodes"];
    std::cout << absl::StreamFormat(
        "  %s, %d node%s (%s%s): %s -> %s\n",
        PrintableLine(c["op"].get<std::string>()), nodes, nodes == 1 ? "" : "s",
        PrintableLine(c["first_node"]), nodes == 1 ? "" : " ...",
        c["input"].get<std::string>(), c["output"].get<std::string>());
    const std::string weight = c["weight"], order = c["summation"];
    std::cout << absl::StreamFormat(
        "    %s%s%s%s%s, %.3f MB, %.3f Mop\n", c["kernel"].get<std::string>(),
        weight.empty() ? "" : " of ", weight,
        order.empty() ? "" : ", summation: ", order,
        c["bytes"].get<double>() / 1e6, c["operations"].get<double>() / 1e6);
    // By reason: most kernels of other types and instruction sets share one.
    std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
    for (const Json& r : c["refused"]) {
      const std::string why = r["why"];
      const auto known =
          std::find_if(reasons.begin(), reasons.end(),
                       [&](const auto& reason) { return reason.first == why; });
      auto& reason =
          known != reasons.end()
              ? *known
              : reasons.emplace_back(why, std::vector<std::string>());
      reason.second.push_back(r["kernel"]);
    }
    for (const auto& [why, kernels] : reasons) {
      std::cout << absl::StreamFormat("      not %s: %s\n",
                                      absl::StrJoin(kernels, ", "), why);
    }
  }
}

}  // namespace

void PrintValue(const std::string& key, const Json& value) {
  std::cout << absl::StreamFormat("  %-22s %s\n", key,
                                  value.is_string()
                                      ? PrintableLine(value.get<std::string>())
                                      : value.dump());
}

Json PlanJson(const Plan& plan, int threads, bool kernels) {
  const PlanMemory memory = MemoryOf(plan, 1, 1);
  const Graph& last = plan.buckets.back();
  int steps = 0;
  for (NodeId id : last.order()) {
    if (!OpOf(last.node(id)).view) ++steps;
  }
  Json buckets = Json::array();
  for (const Graph& graph : plan.buckets) {
    // One row's logits, as runs ask for; the first step and the last.
    Bounds bounds = {graph.bounds.tokens, 1, graph.bounds.tokens};
    const Cost first = StepCost(graph, bounds);
    bounds.context = std::max(bounds.tokens, plan.context());
    const Cost full = StepCost(graph, bounds);
    buckets.push_back(
        {{"tokens", graph.bounds.tokens},
         {"arena_bytes", graph.arena.bytes},
         {"arena_lower_bound", graph.arena.lower_bound},
         {"sum_of_intermediates", graph.arena.sum_of_intermediates},
         {"step_bytes", first.bytes},
         {"step_operations", first.operations},
         {"full_context_step_bytes", full.bytes},
         {"full_context_step_operations", full.operations},
         {"kernels", KernelsOf(graph)}});
  }
  Json passes = Json::array();
  for (const PassRecord& pass : plan.passes) {
    passes.push_back({{"name", pass.name},
                      {"nodes_before", pass.nodes_before},
                      {"nodes_after", pass.nodes_after},
                      {"seconds", pass.seconds}});
  }
  const double overhead =
      memory.source_weights == 0
          ? 0.0
          : static_cast<double>(memory.weights) / memory.source_weights - 1.0;
  Json result = {{"nodes", last.order().size()},
                 {"nodes_before", plan.nodes_before},
                 {"steps", steps},
                 {"context", plan.context()},
                 {"isa", Name(plan.options.isa)},
                 {"planner", Name(plan.options.planner)},
                 {"threads", threads},
                 {"buckets", std::move(buckets)},
                 {"weight_bytes", memory.weights},
                 {"source_weight_bytes", memory.source_weights},
                 {"bytes_left_in_file", BytesLeftInFile(last)},
                 {"packed_overhead", overhead},
                 {"kv_bytes_per_token", memory.kv_per_token},
                 {"kv_bytes", memory.kv},
                 {"state_bytes_per_sequence", memory.slot},
                 {"state_bytes", memory.slots},
                 {"scratch_bytes", memory.thread_scratch * threads},
                 {"logits_bytes", memory.logits},
                 {"tokenizer_bytes", memory.tokenizer},
                 {"peak_bytes", memory.peak(threads)},
                 {"kernels", KernelsOf(last)},
                 {"passes", std::move(passes)}};
  if (memory.kv_per_token_of_heads > memory.kv_per_token) {
    result["kv_bytes_per_token_of_heads"] = memory.kv_per_token_of_heads;
  }
  if (kernels) result["kernel_choices"] = KernelChoices(plan);
  return result;
}

Json MemoryJson(const Plan& plan, int threads) {
  const PlanMemory memory = MemoryOf(plan, 1, 1);
  Json json = {{"weights", memory.weights},
               {"arena", memory.arena},
               {"kv_cache", memory.kv},
               {"states", memory.slots},
               {"scratch",
                (memory.thread_scratch + memory.next_token_scratch) * threads},
               {"tokenizer", memory.tokenizer},
               // One sequence, so tokens are chosen one at a time.
               {"other", memory.program + memory.logits + memory.batching +
                             memory.choosing + memory.next_token_block},
               {"total", memory.peak(threads)}};
  if (memory.experts > 0) json["experts"] = memory.experts;
  return json;
}

Json StreamingJson(const Plan& plan, double disk_bytes_per_second) {
  if (plan.streamed.empty()) return nullptr;
  int64_t slots = 0, experts = 0, bytes = 0;
  for (const ExpertGroup& group : plan.streamed) {
    slots += group.slots;
    experts += group.experts;
    for (const ExpertGroup::Weight& weight : group.weights) {
      bytes += group.experts * weight.expert_bytes;
    }
  }
  const double of_token = ExpertBytesPerToken(plan.streamed);
  const auto rate = [&](double per_second) {
    return of_token > 0 ? Json(per_second / of_token) : Json(nullptr);
  };
  return {{"experts", experts},
          {"experts_in_memory", slots},
          {"expert_bytes", bytes},
          {"bytes_in_memory", MemoryOf(plan, 1, 1).experts},
          {"bytes_read_per_token", of_token},
          {"bytes_read_per_full_step", ExpertBytesPerFullStep(plan.streamed)},
          {"disk_bytes_per_second", disk_bytes_per_second},
          {"tokens_per_second", rate(disk_bytes_per_second)}};
}

void PrintPlan(const Json& plan, const Json& memory) {
  std::cout << "\nmemory, of a run that fills its context\n";
  for (const auto& [key, value] : memory.items()) {
    const int64_t bytes = value;
    std::cout << absl::StreamFormat("  %-22s %11d  %8.1f MiB\n", key, bytes,
                                    bytes / 1048576.0);
  }
  std::cout << "\nplan\n";
  for (const auto& [key, value] : plan.items()) {
    if (!value.is_structured()) PrintValue(key, value);
  }
  std::cout << "\ntokens        arena  lower bound   ratio  sum of "
               "intermediates\n";
  for (const Json& b : plan["buckets"]) {
    const int64_t arena = b["arena_bytes"], bound = b["arena_lower_bound"];
    std::cout << absl::StreamFormat(
        "  %5d  %10d   %10d  %6.4f  %20d\n", b["tokens"].get<int64_t>(), arena,
        bound, static_cast<double>(arena) / std::max<int64_t>(bound, 1),
        b["sum_of_intermediates"].get<int64_t>());
  }
  std::cout
      << "\nwork of a step    in an empty context          in a full one\n"
         "tokens          MB       Mop           MB       Mop\n";
  for (const Json& b : plan["buckets"]) {
    const auto millions = [&](const char* key) {
      return b[key].get<double>() / 1e6;
    };
    std::cout << absl::StreamFormat(
        "  %5d  %9.1f %9.1f    %9.1f %9.1f\n", b["tokens"].get<int64_t>(),
        millions("step_bytes"), millions("step_operations"),
        millions("full_context_step_bytes"),
        millions("full_context_step_operations"));
  }
  std::cout << "\nkernels of the smallest and of the largest bucket\n";
  const Json &first = plan["buckets"].front()["kernels"],
             &last = plan["kernels"];
  Json all = first;
  all.update(last);
  for (const auto& [name, unused] : all.items()) {
    std::cout << absl::StreamFormat("  %5d  %5d  %s\n", first.value(name, 0),
                                    last.value(name, 0), name);
  }
  std::cout << "\npasses                   nodes           seconds\n";
  for (const Json& p : plan["passes"]) {
    std::cout << absl::StreamFormat("  %-20s  %4d -> %4d    %.6f\n",
                                    PrintableLine(p["name"].get<std::string>()),
                                    p["nodes_before"].get<int>(),
                                    p["nodes_after"].get<int>(),
                                    p["seconds"].get<double>());
  }
  if (plan.contains("kernel_choices")) PrintChoices(plan["kernel_choices"]);
}

}  // namespace weft
