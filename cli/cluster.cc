#include "cli/cluster.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "ops/attributes.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiga = 1e9;
constexpr double kGiB = 1 << 30;

absl::Status Wrong(absl::string_view field, absl::string_view want) {
  return absl::InvalidArgumentError(
      absl::StrCat("cluster file: ", field, ": want ", want));
}

// A number above 0; at most 10^9, so that no product of them is too large.
absl::StatusOr<double> NumberOf(const Json& object, const char* field) {
  const auto found = object.find(field);
  const double value =
      found != object.end() && found->is_number() ? found->get<double>() : 0;
  if (value > 0 && value <= kGiga) return value;
  return Wrong(field, "a number above 0, at most 10^9");
}

}  // namespace

absl::StatusOr<Cluster> ParseCluster(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("machines") ||
      !json["machines"].is_array() || !json.contains("link") ||
      !json["link"].is_object()) {
    return Wrong(
        "its form",
        "{\"machines\": [{\"count\": 2, \"read_gbps\": 100, "
        "\"int8_tops\": 10, \"memory_gib\": 64}], \"link\": {\"gbps\": "
        "10, \"us\": 50}}");
  }
  Cluster cluster;
  for (const Json& entry : json["machines"]) {
    if (!entry.is_object()) return Wrong("machines", "objects");
    double count = 1;
    if (entry.contains("count")) {
      WEFT_ASSIGN_OR_RETURN(count, NumberOf(entry, "count"));
    }
    RankMachine machine;
    WEFT_ASSIGN_OR_RETURN(const double read, NumberOf(entry, "read_gbps"));
    WEFT_ASSIGN_OR_RETURN(const double int8, NumberOf(entry, "int8_tops"));
    WEFT_ASSIGN_OR_RETURN(const double memory, NumberOf(entry, "memory_gib"));
    machine.read_bytes = read * kGiga;
    machine.int8_operations = int8 * kGiga * 1000;
    machine.memory = static_cast<int64_t>(memory * kGiB);
    if (count != static_cast<int64_t>(count) ||
        count + static_cast<double>(cluster.machines.size()) >
            kMostRanksOfPlan) {
      return Wrong("count", absl::StrCat("whole numbers, together at most ",
                                         kMostRanksOfPlan));
    }
    cluster.machines.insert(cluster.machines.end(), static_cast<size_t>(count),
                            machine);
  }
  if (cluster.machines.empty()) return Wrong("machines", "one at least");
  WEFT_ASSIGN_OR_RETURN(const double bits, NumberOf(json["link"], "gbps"));
  WEFT_ASSIGN_OR_RETURN(const double micro, NumberOf(json["link"], "us"));
  cluster.link = {bits * kGiga / 8, micro * 1e-6};
  const int64_t all = static_cast<int64_t>(cluster.machines.size());
  for (int64_t ranks = 1; ranks < all; ranks *= 2) {
    cluster.ranks.push_back(ranks);
  }
  cluster.ranks.push_back(all);
  return cluster;
}

absl::StatusOr<Json> ClusterJson(const GgufFile& file,
                                 const ModelOptions& options,
                                 const Cluster& cluster) {
  Json rows = Json::array();
  for (const int64_t ranks : cluster.ranks) {
    Json row = {{"ranks", ranks}};
    double decode = 0, prompt = 0;
    bool fits = true;
    RankCost largest;
    // Shares of ranks differ by one unit at most: where the machines are alike,
    // the last rank has the largest.
    const RankMachine& first = cluster.machines.front();
    const bool alike =
        std::all_of(cluster.machines.begin(), cluster.machines.begin() + ranks,
                    [&](const RankMachine& machine) {
                      return machine.read_bytes == first.read_bytes &&
                             machine.int8_operations == first.int8_operations &&
                             machine.memory == first.memory;
                    });
    for (int64_t rank = alike ? ranks - 1 : 0; rank < ranks; ++rank) {
      ModelOptions own = options;
      own.compile.shard = {rank, ranks};
      WEFT_ASSIGN_OR_RETURN(const Plan plan, CompileModel(file, own));
      const RankCost cost = RankCostOf(plan);
      const RankMachine& machine = cluster.machines[rank];
      decode =
          std::max(decode, DecodeSeconds(cost, ranks, machine, cluster.link));
      prompt =
          std::max(prompt, PromptSeconds(cost, ranks, machine, cluster.link) /
                               static_cast<double>(cost.prompt_rows));
      fits = fits && (machine.memory == 0 || cost.peak <= machine.memory);
      if (cost.peak >= largest.peak) largest = cost;
    }
    row["weights_per_rank"] = largest.weights;
    row["kv_bytes_per_token_and_rank"] = largest.kv_per_token;
    row["peak_per_rank"] = largest.peak;
    row["fits"] = fits;
    row["gathers"] = largest.gathers;
    row["bytes_received_per_token"] = largest.received_bytes_per_row;
    row["seconds_per_step"] = decode;
    row["decode_tokens_per_second"] = 1 / decode;
    row["prompt_tokens_per_second"] = 1 / prompt;
    rows.push_back(std::move(row));
  }
  return rows;
}

void PrintCluster(const Json& rows) {
  std::cout << "\nby ranks (at most; each one's share)\n";
  std::cout << absl::StreamFormat("  %5s %12s %12s %8s %14s %10s %10s\n",
                                  "ranks", "weights MiB", "peak MiB", "gathers",
                                  "bytes/token", "decode/s", "prompt/s");
  for (const Json& row : rows) {
    std::cout << absl::StreamFormat(
        "  %5d %12d %12d %8d %14d %10.2f %10.1f%s\n",
        row["ranks"].get<int64_t>(),
        row["weights_per_rank"].get<int64_t>() >> 20,
        row["peak_per_rank"].get<int64_t>() >> 20,
        row["gathers"].get<int64_t>(),
        row["bytes_received_per_token"].get<int64_t>(),
        row["decode_tokens_per_second"].get<double>(),
        row["prompt_tokens_per_second"].get<double>(),
        row["fits"].get<bool>() ? "" : "  does not fit");
  }
}

}  // namespace weft
