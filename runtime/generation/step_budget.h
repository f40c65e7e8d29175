// How many prompt tokens of which sequence run in the next step.
//
// Half of what a step takes goes to the oldest prompt, so that none is put off
// for ever; the other half to those with the least left, so that a short prompt
// need not wait for a long one before it.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace weft {

// `left`: by sequence, oldest first, the tokens that are still to be run.
// Writes how many of them run now: `budget` in all, or all that are left.
// Requires budget >= 0, and spans of equal size.
void ShareBudget(absl::Span<const int64_t> left, int64_t budget,
                 absl::Span<int64_t> share);

}  // namespace weft
