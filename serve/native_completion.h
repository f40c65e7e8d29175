// /completion and /infill in the form of llama.cpp's server.
#pragma once

#include "serve/http_server.h"
#include "serve/served_model.h"

namespace weft {

// As RunJob. Samplers that weft does not have are refused by name.
void AnswerNativeCompletion(const ServedModel& model,
                            const ServiceLimits& limits, HttpCall* call);
// What stands between input_prefix and input_suffix.
void AnswerInfill(const ServedModel& model, const ServiceLimits& limits,
                  HttpCall* call);

}  // namespace weft
