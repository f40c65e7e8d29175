// What `weft inspect` says of a model that several ranks run together.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "loaders/gguf.h"
#include "nlohmann/json.hpp"
#include "runtime/api/model.h"
#include "runtime/plan/rank_cost.h"

namespace weft {

struct Cluster {
  // Each runs one rank, the first ones first.
  std::vector<RankMachine> machines;
  RankLink link;
  // How many of them to look at: 1, 2, 4 ... and all.
  std::vector<int64_t> ranks;
};

//   {"machines": [{"count": 16, "read_gbps": 200, "int8_tops": 20,
//                  "memory_gib": 512}],
//    "link": {"gbps": 25, "us": 10}}
//
// read_gbps counts 10^9 bytes per second, the link's gbps 10^9 bits, int8_tops
// 10^12 operations. Errors name the field. At most kMostRanksOfPlan machines.
absl::StatusOr<Cluster> ParseCluster(const std::string& text);

// An object for each number of ranks: bytes per rank, traffic, and tokens per
// second at most.
absl::StatusOr<nlohmann::ordered_json> ClusterJson(const GgufFile& file,
                                                   const ModelOptions& options,
                                                   const Cluster& cluster);
void PrintCluster(const nlohmann::ordered_json& rows);

}  // namespace weft
