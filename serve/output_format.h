// What the text of an answer must be, in each spelling that clients use:
//
//   response_format    OpenAI's: text, json_object (with `schema`, too),
//                      json_schema; its flat form of /v1/responses, text.format
//   json_schema        of llama.cpp's clients: the schema itself
//   guided_json, guided_regex, guided_choice, guided_grammar,
//   structured_outputs (json, regex, choice, grammar, json_object)
//                      of vLLM's clients
//   grammar            GBNF
//   format             Ollama's: "json" or a schema
//
// One request has one of them. What is asked for stands in GenerationFields,
// with the field that asked, for messages.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "serve/json_fields.h"
#include "serve/openai_request.h"

namespace weft {

// Of the body of a request: all spellings but the two below.
void ReadOutputFormat(JsonFields* fields, GenerationFields* generation);

// What stands at `path`: an object with `type`, as response_format has it. Of
// json_schema, `schema` and `strict` may stand in `json_schema` or beside
// `type`.
absl::Status ReadResponseFormat(const nlohmann::ordered_json& format,
                                const std::string& path,
                                GenerationFields* generation);

// Ollama's `format`: "json", a schema, or "" and null for any text.
absl::Status ReadOllamaFormat(const nlohmann::ordered_json& format,
                              const std::string& path,
                              GenerationFields* generation);

}  // namespace weft
