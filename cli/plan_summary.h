// What `weft inspect` says about a plan, as JSON and as text.
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "runtime/plan/plan.h"

namespace weft {

// `plan` of the command-line contract; with `kernels`, kernel_choices too.
nlohmann::ordered_json PlanJson(const Plan& plan, int threads, bool kernels);

// The resident size of a run that fills the context of one sequence, part by
// part: weights, arena, kv_cache, scratch, tokenizer, other, total.
nlohmann::ordered_json MemoryJson(const Plan& plan, int threads);

// What streaming its experts reads and how fast that can be, from a disk of
// this rate; null where nothing is streamed.
nlohmann::ordered_json StreamingJson(const Plan& plan,
                                     double disk_bytes_per_second);

// Both, for people.
void PrintPlan(const nlohmann::ordered_json& plan,
               const nlohmann::ordered_json& memory);

// One "key value" line. Names come from files: nothing in them may move the
// cursor.
void PrintValue(const std::string& key, const nlohmann::ordered_json& value);

}  // namespace weft
