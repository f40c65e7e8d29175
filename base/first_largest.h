// The choice of the most likely token, over vocabularies of 32k to 256k: what
// std::max_element does, many values at a time.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace weft {

// Position of the first of the largest values; 0 if there is none above
// -infinity. NaN is passed over. Thread-safe.
int64_t FirstLargest(absl::Span<const float> values);

}  // namespace weft
