// /v1/embeddings: texts as vectors, by models for them.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "serve/http_server.h"
#include "serve/openai_request.h"
#include "serve/served_model.h"

namespace weft {

void AnswerEmbeddings(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call);

// The scheduler's requests for texts. Errors: the model gives no vectors, a
// text that does not fit.
absl::StatusOr<std::vector<Request>> EmbeddingRequests(
    const ServedModel& model, const ServiceLimits& limits,
    const EncodeOptions& encode, const EmbeddingsRequest& asked);

// What whole texts give, in their order: vectors, or scores. `*tokens` is how
// many the texts had. Texts end with their client.
absl::StatusOr<std::vector<std::vector<float>>> WholeTexts(
    const ServedModel& model, const ServiceLimits& limits,
    std::vector<Request> requests, const HttpCall& call, int64_t* tokens);

// The vectors of all texts, in their order, the first `dimensions` numbers of
// them (0: all), of length 1 as OpenAI's; the rest as above.
absl::StatusOr<std::vector<std::vector<float>>> Embed(
    const ServedModel& model, const ServiceLimits& limits,
    std::vector<Request> requests, int64_t dimensions, const HttpCall& call,
    int64_t* tokens);

}  // namespace weft
