// /v1/embeddings: texts as vectors, by encoder models.
#pragma once

#include "serve/http_server.h"
#include "serve/served_model.h"

namespace weft {

// Vectors have length 1, as OpenAI's do. One request at a time runs.
void AnswerEmbeddings(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call);

}  // namespace weft
