// Whether a request can be run at all: every field in range.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/request.h"
#include "text/tokenizer.h"

namespace weft {

// kInvalidArgument: a field out of range, with its name; kOutOfRange: the
// prompt and one more token are above `capacity`.
absl::Status CheckRequest(const Request& request, int32_t vocabulary_size,
                          int64_t capacity);

// The vocabulary's end-of-text tokens.
std::vector<int32_t> EndTokens(const Tokenizer& tokenizer,
                               int32_t vocabulary_size);

}  // namespace weft
