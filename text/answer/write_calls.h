// Calls as a model of a form writes them.
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "text/answer/forms.h"

namespace weft::answer {

// `calls` as a message has them in OpenAI's form: [{"function": {"name",
// "arguments"}}, ..]; arguments are an object, or text (ArgumentsObject).
std::string WriteCalls(const CallForm& form,
                       const nlohmann::ordered_json& calls);

}  // namespace weft::answer
