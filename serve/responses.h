// OpenAI's /v1/responses.
#pragma once

#include "serve/http_server.h"
#include "serve/response_store.h"
#include "serve/served_model.h"

namespace weft {

// As RunJob. Keeps the answer unless "store" is false; `store` must outlive the
// call's response.
void AnswerResponses(const ServedModel& model, const ServiceLimits& limits,
                     ResponseStore* store, HttpCall* call);

// The tokens that the prompt of the same request has.
void AnswerInputTokens(const ServedModel& model, const ServiceLimits& limits,
                       ResponseStore* store, HttpCall* call);

// What was answered, by its id (HttpCall::rest), or, behind it "/input_items",
// what was asked; and forgetting both.
void AnswerStoredResponse(ResponseStore* store, HttpCall* call);
void AnswerRemoveResponse(ResponseStore* store, HttpCall* call);

}  // namespace weft
