#include "runtime/plan/rank_cost.h"

#include <algorithm>
#include <cmath>

#include "ops/collectives.h"
#include "ops/ops.h"
#include "runtime/plan/kernel_uses.h"

namespace weft {
namespace {

double Seconds(const Cost& work, int64_t rows, const RankCost& cost,
               int64_t ranks, const RankMachine& machine,
               const RankLink& link) {
  const double computing =
      std::max(static_cast<double>(work.bytes) / machine.read_bytes,
               static_cast<double>(work.operations) / machine.int8_operations);
  if (ranks == 1) return computing;
  const double hops = std::ceil(std::log2(static_cast<double>(ranks)));
  return computing + static_cast<double>(cost.gathers) * hops * link.seconds +
         static_cast<double>(cost.received_bytes_per_row * rows) / link.bytes;
}

}  // namespace

RankCost RankCostOf(const Plan& plan) {
  RankCost cost;
  const PlanMemory memory = MemoryOf(plan, 1, 1);
  cost.weights = memory.weights;
  cost.kv_per_token = memory.kv_per_token;
  cost.peak = memory.peak(1);
  const Graph& one = plan.buckets.front();
  const Graph& many = plan.buckets.back();
  cost.prompt_rows = std::min(many.bounds.tokens, plan.context());
  cost.decode = StepCost(one, {1, 1, std::max<int64_t>(plan.context() / 2, 1)});
  cost.prompt = StepCost(
      many, {cost.prompt_rows, 1, std::max<int64_t>(cost.prompt_rows / 2, 1)});
  for (NodeId id : one.order()) {
    const Node& node = one.node(id);
    if (!node.Is(kAllGatherOp)) continue;
    ++cost.gathers;
    const auto gather = node.attributes.As<AllGatherAttributes>();
    for (int64_t rank = 0; rank < gather.ranks; ++rank) {
      if (rank == gather.rank) continue;
      cost.received_bytes_per_row += GatheredRowBytes(one, node, rank);
    }
  }
  return cost;
}

double DecodeSeconds(const RankCost& cost, int64_t ranks,
                     const RankMachine& machine, const RankLink& link) {
  return Seconds(cost.decode, 1, cost, ranks, machine, link);
}

double PromptSeconds(const RankCost& cost, int64_t ranks,
                     const RankMachine& machine, const RankLink& link) {
  return Seconds(cost.prompt, cost.prompt_rows, cost, ranks, machine, link);
}

}  // namespace weft
