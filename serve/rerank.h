// /rerank and /v1/rerank: documents in the order in which they answer a query.
#pragma once

#include "serve/http_server.h"
#include "serve/served_model.h"

namespace weft {

// {"query", "documents", "top_n", "return_documents"}, or "texts" as
// text-embeddings-inference has it. A score is the model's own number, not
// normalised (runtime/api/ranking.h). Only a model with a head for scores
// ranks: distances of embeddings would be an order, too, but not the one that
// is asked for, so all others are refused.
void AnswerRerank(const ServedModel& model, const ServiceLimits& limits,
                  HttpCall* call);

}  // namespace weft
