// Registers the attention of custom_attention.cc.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "base/registration.h"

namespace examples {

struct WindowedAttention {
  int64_t window = 256;  // a row sees this many positions, its own included
  double slope = 1.0;    // times ALiBi's slopes; 0: no bias
};

// The op, its kernel and the pass that puts it in the place of every attention,
// for as long as the registrations live. Once at a time in a process. Errors: a
// window below 1, a slope that is negative or not finite.
absl::StatusOr<std::vector<weft::Registration>> RegisterWindowedAttention(
    const WindowedAttention& options);

}  // namespace examples
