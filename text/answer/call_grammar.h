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
// arguments fit the tool's parameters, whatever they are written in: where
// strings stand between markers without quotes, these are the strings of the
// schema in which the closing marker (of long texts that are counted: its
// beginning) does not come. Where `reasoning_close` is
// not empty, reasoning is open and goes on up to it. `control` are control
// tokens: where a marker has one, the token is meant
// (grammar::TokenTrie::kControl). What of schemas is not kept is an error where
// the tool says `strict` or, if it does not say, where `strict` is true; else
// it is in Syntax::dropped. Errors are those of the schemas
// (text/grammar/json_schema.h).
//
// Of `OrText` tools: any text, and calls in it; what begins as a call is one,
// up to its end. A tool is then strict only if it says so. Reasoning, also what
// the model opens itself, has no calls.
absl::StatusOr<grammar::Syntax> CallGrammar(
    const CallForm& form, const nlohmann::ordered_json& tools,
    const std::string& reasoning_close, const std::vector<std::string>& control,
    bool strict = true);

// These tools, of which none need be called.
nlohmann::ordered_json OrText(nlohmann::ordered_json tools);

// Whether one of these tools, or null, says that its calls fit its schema.
bool AnyStrict(const nlohmann::ordered_json& tools);

}  // namespace weft::answer
