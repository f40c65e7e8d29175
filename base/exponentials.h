// e to the power of many numbers, for softmax over vocabularies: a vectorized
// loop instead of a call of the C library for each.
#pragma once

#include "absl/types/span.h"

namespace weft {

// Replaces each value, 0 or below (-infinity too, not NaN), by e to its power.
// Within 1e-15 of it relatively; 0 below -708, where double loses precision.
// The same bits on every CPU and with every C library. Thread-safe.
void Exponentials(absl::Span<double> values);

}  // namespace weft
