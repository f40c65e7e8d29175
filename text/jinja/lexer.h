// Template source to tokens.
//
// White space is treated as HuggingFace's environment for chat templates does
// (trim_blocks and lstrip_blocks on): a newline right after a block tag or a
// comment goes away, and so does the white space before one that is first in
// its line; `-` next to a tag's brace removes all white space on that side, `+`
// keeps it. One newline at the end of the source goes away; all newlines become
// \n. Comments and raw blocks are dealt with here, and strings lose their
// quotes and escapes.
//
// Source of the rules: Jinja's "Template Designer Documentation".
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "text/jinja/text.h"

namespace weft::jinja {

struct Token {
  enum Kind {
    kData,
    kPrintBegin,  // {{
    kPrintEnd,    // }}
    kBlockBegin,  // {%
    kBlockEnd,    // %}
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,  // also brackets and punctuation
    kEnd,
  };
  Kind kind;
  int line;
  std::string text;  // as written; of kString and kData, see below
  Text characters;   // of kString and kData
};

// Ends with a kEnd. Errors read "line N: <why>".
absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source);

}  // namespace weft::jinja
