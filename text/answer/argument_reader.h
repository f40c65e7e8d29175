// The arguments of one call, in whatever form they are written, as the text of
// a JSON object, part by part while they come.
//
// Idea: one small machine for each shape of arguments. What is JSON already
// goes through byte by byte, so that numbers keep their spelling; the rest is
// put into JSON: strings as they come, other values when they are whole.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "text/answer/forms.h"
#include "text/answer/json_scanner.h"

namespace weft::answer {

class ArgumentReader {
 public:
  virtual ~ArgumentReader() = default;

  // `text` is what has come and was not used yet; with `at_end` nothing
  // follows. Sets `*used` to the bytes that are done with, and appends to
  // `*json`. kBad: these are no arguments; those used before stay told.
  virtual Scan Read(absl::string_view text, bool at_end, size_t* used,
                    std::string* json) = 0;
};

// A JSON object; its `{` comes first.
std::unique_ptr<ArgumentReader> JsonArguments();
// A JSON string that holds one; its quote comes first.
std::unique_ptr<ArgumentReader> TextArguments();
// CallBody::kParameters, up to and without what closes the call. `form` and
// `schema`, the tool's parameters or null, must outlive it. A value is a string
// where the schema, in whatever way, says so; where it may be something else,
// too, it is that if the text is JSON, or Python, of one of its types.
std::unique_ptr<ArgumentReader> ParameterArguments(
    const CallForm* form, const nlohmann::ordered_json* schema);
// key=value, .. up to and with the closing parenthesis.
std::unique_ptr<ArgumentReader> PythonArguments();
// All of `text` as a value of Python, without space around it, in JSON; empty:
// it is none.
std::string PythonJson(absl::string_view text);
// CallBody::kBraces; its `{` comes first. `quote` must outlive it.
std::unique_ptr<ArgumentReader> BraceArguments(absl::string_view quote);

}  // namespace weft::answer
