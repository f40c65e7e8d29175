// What the text of an answer must be, in each spelling that clients use:
//
//   response_format    OpenAI's: text, json_object (with `schema`, too),
//                      json_schema
//   json_schema        of llama.cpp's clients: the schema itself
//   guided_json, guided_regex, guided_choice, guided_grammar,
//   structured_outputs (json, regex, choice, grammar, json_object)
//                      of vLLM's clients
//   grammar            GBNF
//
// One request has one of them. What is asked for stands in GenerationFields,
// with the field that asked, for messages.
#pragma once

#include "serve/json_fields.h"
#include "serve/openai_request.h"

namespace weft {

// Of the body of a request, which other dialects are translated to. Of
// json_schema, `schema` and `strict` may stand in `json_schema` or beside
// `type`.
void ReadOutputFormat(JsonFields* fields, GenerationFields* generation);

}  // namespace weft
