// The fields that completions and chat share (serve/openai_request.h).
#pragma once

#include "serve/json_fields.h"
#include "serve/openai_request.h"

namespace weft {

// Everything of GenerationFields but top_logprobs, which the two endpoints
// write differently.
void ReadGenerationFields(JsonFields* fields, const RequestLimits& limits,
                          GenerationFields* generation);

}  // namespace weft
