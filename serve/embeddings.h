// /v1/embeddings: texts as vectors, by encoder models.
#pragma once

#include "serve/http_server.h"
#include "serve/served_model.h"

namespace weft {

// Vectors have length 1, as OpenAI's do. Texts are requests of the
// scheduler, and end with their client.
void AnswerEmbeddings(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call);

}  // namespace weft
