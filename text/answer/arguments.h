// Arguments of calls, which travel as text: what object they are.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace weft::answer {

// The object that `text` is, with numbers as they are spelled
// (text/json_tree.h), however large, and U+FFFD for half of a surrogate pair.
// nullopt: it is none, or beyond that file's bounds.
std::optional<nlohmann::ordered_json> ParseArguments(absl::string_view text);

// For templates, which want an object of whatever a model wrote: where it broke
// off, or breaks, what came before is closed (a string, lists, objects), and
// what cannot be (half a key, half a word) is left out. What does not begin as
// an object is the value of "arguments"; nothing is {}.
nlohmann::ordered_json ArgumentsObject(absl::string_view text);

}  // namespace weft::answer
