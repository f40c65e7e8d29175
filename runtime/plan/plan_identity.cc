#include "runtime/plan/plan_identity.h"

#include <fstream>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/text_format.h"
#include "ops/attributes.h"
#include "ops/ops.h"
#include "runtime/plan/streamed_experts.h"
#include "runtime/plan/weight_checksum.h"
#include "xxhash.h"

namespace weft {
namespace {

uint64_t ReadHashOfThisProgram() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  XXH3_state_t* const state = XXH3_createState();
  XXH3_64bits_reset(state);
  std::vector<char> part(1 << 20);
  do {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    XXH3_64bits_update(state, part.data(), static_cast<size_t>(file.gcount()));
  } while (file);
  const uint64_t hash = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  return hash;
}

}  // namespace

uint64_t HashOfThisProgram() {
  static const uint64_t hash = ReadHashOfThisProgram();
  return hash;
}

std::string ExchangesOf(const Plan& plan) {
  std::string all;
  int64_t gathers = 0;
  for (const Graph* graph : plan.AllGraphs()) {
    gathers = 0;
    absl::StrAppend(&all, graph->bounds.tokens, ":");
    for (NodeId id : graph->order()) {
      const Node& node = graph->node(id);
      if (!node.Is(kAllGatherOp)) continue;
      const auto gather = node.attributes.As<AllGatherAttributes>();
      absl::StrAppend(&all, gather.units, " ", gather.parts, " ",
                      gather.columns, " ",
                      graph->value(node.outputs[0]).type.ToString(), ";");
      ++gathers;
    }
  }
  return absl::StrCat(gathers, " in a step (",
                      absl::Hex(XXH3_64bits(all.data(), all.size())), ")");
}

std::string PlanIdentity(const Plan& plan) {
  std::string identity = absl::StrCat(HashOfThisProgram(), "\n");
  for (const Graph* bucket : plan.AllGraphs()) {
    absl::StrAppend(&identity, Dump(*bucket));
  }
  const std::map<std::string, int64_t> experts = ExpertWeights(plan);
  std::set<std::string> seen;  // buckets share weights
  for (const Graph* graph : plan.AllGraphs()) {
    for (ValueId id = 0; id < graph->value_count(); ++id) {
      const Value& value = graph->value(id);
      if (value.kind != ValueKind::kWeight || !seen.insert(value.name).second) {
        continue;
      }
      const auto bytes = value.data.bytes;
      if (const auto it = experts.find(value.name); it != experts.end()) {
        // What is read of those that are streamed is compared with these.
        absl::StrAppend(&identity, value.name, " ",
                        absl::StrJoin(plan.Streams(value.name)
                                          ? plan.expert_checksums.at(value.name)
                                          : ExpertChecksums(bytes, it->second),
                                      " "),
                        "\n");
        continue;
      }
      absl::StrAppend(&identity, value.name, " ",
                      XXH3_64bits(bytes.data(), bytes.size()), "\n");
    }
  }
  return identity;
}

}  // namespace weft
