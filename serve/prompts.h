// Prompts as the model takes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "serve/http_server.h"
#include "serve/openai_request.h"
#include "serve/served_model.h"

namespace weft {

// The ids of a prompt. Control tokens written in a text stay text unless
// `parse_special`.
absl::StatusOr<std::vector<int32_t>> EncodePrompt(const ServedModel& model,
                                                  const Prompt& prompt,
                                                  bool parse_special,
                                                  const EncodeOptions& options);

// What a fill-in-the-middle model is asked to write what stands between
// `before` and `suffix`. Errors: the model has no tokens for it.
absl::StatusOr<std::vector<int32_t>> EncodeFill(const ServedModel& model,
                                                const Prompt& before,
                                                const std::string& suffix,
                                                const EncodeOptions& options);

// Encoding ends when the call's client has gone.
EncodeOptions WhileClientIsThere(HttpCall* call);

// An error unless there are tokens, all the model's own, not more than the
// owner allows, and there is room for them and `more`. `field` is where they
// come from.
absl::Status CheckPrompt(const ServedModel& model, const ServiceLimits& limits,
                         const std::vector<int32_t>& tokens, const char* field,
                         int64_t more);

}  // namespace weft
