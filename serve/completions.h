// OpenAI's /v1/completions and /v1/chat/completions, and what of them other
// dialects are made of: they translate their requests into these.
//
// What users write in a chat is never read as control tokens: these are taken
// from the template's own text alone. In a raw completion they are meant,
// unless the request or the owner says otherwise (parse_special).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "serve/generate.h"
#include "serve/http_server.h"
#include "serve/openai_request.h"
#include "serve/served_model.h"

namespace weft {

// As RunJob.
void AnswerCompletion(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call);
void AnswerChat(const ServedModel& model, const ServiceLimits& limits,
                HttpCall* call);

// What is to be generated. Errors name fields of the request.
absl::StatusOr<Job> CompletionJob(const ServedModel& model,
                                  const ServiceLimits& limits,
                                  const EncodeOptions& encode,
                                  CompletionRequest request);
absl::StatusOr<Job> ChatJob(const ServedModel& model,
                            const ServiceLimits& limits,
                            const EncodeOptions& encode,
                            ChatCompletionRequest request);

// The template's text of a chat, by author.
absl::StatusOr<std::vector<TextSegment>> RenderChat(
    const ServedModel& model, const ChatCompletionRequest& request);

// The tokens that its prompt has, also where they do not fit the context.
absl::StatusOr<size_t> CountChatTokens(const ServedModel& model,
                                       const EncodeOptions& encode,
                                       const ChatCompletionRequest& request);

}  // namespace weft
