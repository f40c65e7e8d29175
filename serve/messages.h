// Anthropic's /v1/messages and /v1/messages/count_tokens.
#pragma once

#include "serve/http_server.h"
#include "serve/served_model.h"

namespace weft {

// {"type": "error", "error": {"type", "message"}}.
nlohmann::ordered_json MessagesError(const ApiError& error);

// As RunJob. A last message of the assistant is continued.
void AnswerMessages(const ServedModel& model, const ServiceLimits& limits,
                    HttpCall* call);
void AnswerCountTokens(const ServedModel& model, const ServiceLimits& limits,
                       HttpCall* call);

}  // namespace weft
