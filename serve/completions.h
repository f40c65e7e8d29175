// The routes that generate: /v1/completions and /v1/chat/completions.
//
// What users write is never read as control tokens: in a chat they are taken
// from the template's own text alone, in a completion only where the request
// says parse_special.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "serve/http_server.h"
#include "serve/served_model.h"

namespace weft {

// Return when the answer is there or, for a stream, has begun; then it is
// written while the response is sent. A client that goes takes its request with
// it. `model` must outlive the call's response.
void AnswerCompletion(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call);
void AnswerChat(const ServedModel& model, const ServiceLimits& limits,
                HttpCall* call);

// The template's text of a chat, by author.
absl::StatusOr<std::vector<TextSegment>> RenderChat(
    const ServedModel& model, const ChatCompletionRequest& request);

}  // namespace weft
