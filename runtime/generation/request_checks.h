// Whether a request can be run at all: every field in range.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/generation/request.h"
#include "runtime/plan/plan.h"
#include "text/tokenizer.h"

namespace weft {

// kInvalidArgument: a field out of range, with its name, or another kind of
// request than the model's; kOutOfRange: the prompt is above `capacity`.
absl::Status CheckRequest(const Request& request, const ModelInfo& model,
                          int64_t capacity);

// The vocabulary's end-of-text tokens.
std::vector<int32_t> EndTokens(const Tokenizer& tokenizer,
                               int32_t vocabulary_size);

}  // namespace weft
