// The fields that completions and chat share (serve/openai_request.h).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "serve/json_fields.h"
#include "serve/openai_request.h"

namespace weft {

// Everything of GenerationFields but top_logprobs, which the two endpoints
// write differently.
void ReadGenerationFields(JsonFields* fields, const RequestLimits& limits,
                          GenerationFields* generation);

// A list of {"id", "scale"}, which is the value at `path`. Errors: it is none,
// a number twice.
absl::Status ReadAdapterScales(const nlohmann::ordered_json& list,
                               const std::string& path,
                               std::vector<std::pair<int64_t, float>>* scales);

}  // namespace weft
