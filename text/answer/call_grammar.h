// What a call must look like, for models that are made to write one.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "text/answer/forms.h"
#include "text/grammar/syntax.h"

namespace weft::answer {

// One call of any of `tools` (OpenAI's form, at least one) in this form; its
// arguments fit the tool's parameters. Where `reasoning_close` is not empty,
// reasoning is open and goes on up to it. `control` are control tokens: where a
// marker has one, the token is meant (grammar::TokenTrie::kControl). What of
// schemas is not kept is an error if `strict`, else it is in Syntax::dropped.
// Errors are those of the schemas (text/grammar/json_schema.h).
//
// Limit: where values are no JSON (CallBody::kParameters and kBraces), of a
// string's schema only enum and const are kept.
absl::StatusOr<grammar::Syntax> CallGrammar(
    const CallForm& form, const nlohmann::ordered_json& tools,
    const std::string& reasoning_close, const std::vector<std::string>& control,
    bool strict = true);

}  // namespace weft::answer
