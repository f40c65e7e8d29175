// /rerank and /v1/rerank: documents in the order in which they answer a query.
#pragma once

#include "serve/http_server.h"
#include "serve/served_model.h"

namespace weft {

// Only a model with a head for scores ranks. Distances of embeddings would be
// an order, too, but not the one that is asked for: so all others are refused,
// and no model is read with such a head yet.
void AnswerRerank(const ServedModel& model, const ServiceLimits& limits,
                  HttpCall* call);

}  // namespace weft
