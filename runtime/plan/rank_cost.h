// What several ranks that run a model together need, and how fast they can be
// at most: for `weft inspect --shards` and `--cluster`.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/op.h"
#include "runtime/plan/plan.h"

namespace weft {

// A machine of one rank, and its link to the others. Per second.
struct RankMachine {
  double read_bytes = 0;
  double int8_operations = 0;
  int64_t memory = 0;  // 0: not known
};
struct RankLink {
  double bytes = 0;
  double seconds = 0;  // until the first byte of a message arrives
};

// Of one rank's plan.
struct RankCost {
  int64_t weights = 0;
  int64_t kv_per_token = 0;
  int64_t peak = 0;  // with one sequence's whole context, for one thread
  // Of a step of one row behind half a context, and of the largest bucket's
  // rows of one prompt.
  Cost decode, prompt;
  int64_t prompt_rows = 0;
  // all_gather nodes of a step, and what each row brings from other ranks.
  int64_t gathers = 0;
  int64_t received_bytes_per_row = 0;
};
RankCost RankCostOf(const Plan& plan);

// Seconds of a step at most as short as this: reads or products at the
// machine's limit, then what is received, of which a message comes in
// ceil(log2(ranks)) hops.
double DecodeSeconds(const RankCost& cost, int64_t ranks,
                     const RankMachine& machine, const RankLink& link);
double PromptSeconds(const RankCost& cost, int64_t ranks,
                     const RankMachine& machine, const RankLink& link);

}  // namespace weft
