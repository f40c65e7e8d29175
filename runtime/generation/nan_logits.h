// Logits that are no numbers: of weights that are broken. A token with such a
// logit is never chosen; a row of nothing else has none to choose.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace weft {

struct NanLogits {
  int64_t count = 0;
  int64_t first = -1;
};

// Puts -infinity in their places and tells how many there were. Thread-safe.
NanLogits MaskNans(absl::Span<float> logits);

// One line about some NaNs among `size` logits.
std::string NanWarning(const NanLogits& nans, int64_t size);

// kInternal: all of `size` logits were none.
absl::Status CheckSomeLeft(const NanLogits& nans, int64_t size);

}  // namespace weft
