// The regular expressions of JSON Schema's `pattern`, as terms for the inside
// of a JSON string.
//
// Supported: literals, escapes (\d \w \s, in capitals their complements, \n \t
// \r \f \v \xHH \uHHHH, and punctuation), classes, `.`, groups (also (?:...)),
// alternatives, * + ? {m} {m,} {m,n}, and ^ and $ around the whole. Without ^
// or $ anything may come before or after. Look-around, back references, word
// borders and anchors elsewhere are errors that name them.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "text/grammar/syntax.h"

namespace weft::grammar {

absl::StatusOr<Term> ParsePattern(absl::string_view pattern);

}  // namespace weft::grammar
