// Gives every intermediate of a step a place in one arena.
//
// Offline dynamic storage allocation. The known good heuristic for neural
// networks ("greedy by size", Pisarchyk and Lee, "Efficient Memory Management
// for Deep Neural Net Inference", 2020): the largest buffer first, each in the
// smallest sufficient gap between the buffers that are alive with it. Where
// that misses the lower bound, an exact search goes over the layers one by one
// (fit_by_parts.h); where that finds nothing, a local search reorders and tries
// again. All within a fixed amount of work and from a fixed seed, so that a
// graph always gets the same plan.
//
// Limits: the problem is NP-hard, so the arena may stay above the bound; the
// plan says both.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "passes/buffer_plan.h"

namespace weft {

enum class PlanStrategy {
  kSearch,    // by size, then the search: what weft uses
  kBySize,    // by size alone
  kFirstUse,  // in order of first use, as an allocator at run time would
  kNoReuse,   // every buffer its own place: to tell a planner's fault from
              // others
};

// "search", "by-size", "first-use", "no-reuse": in flags and plan files.
const char* Name(PlanStrategy strategy);
std::optional<PlanStrategy> PlanStrategyFromName(absl::string_view name);

// Thread-safe. Every plan has passed CheckPlan. Errors: a record that is not
// legal.
absl::StatusOr<BufferPlan> PlanArena(
    absl::Span<const Lifetime> lifetimes,
    PlanStrategy strategy = PlanStrategy::kSearch);

}  // namespace weft
