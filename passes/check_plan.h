// Proves that a buffer plan is sound. Runs on every plan that the planner makes
// and on every plan that comes from a file, so it trusts neither records nor
// offsets, and shares no code with the planner.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "passes/buffer_plan.h"

namespace weft {

// OK if the records are legal, no two buffers that are alive in the same step
// overlap, sharing records lie at one place, every offset is aligned, and
// everything is inside [0, arena_bytes). Else an error that names the record
// (or both) by index. O(n log n).
absl::Status CheckPlan(absl::Span<const Lifetime> lifetimes,
                       absl::Span<const int64_t> offsets, int64_t arena_bytes);

// The part about the records alone.
absl::Status CheckLifetimes(absl::Span<const Lifetime> lifetimes);

}  // namespace weft
