// The regular expressions of JSON Schema's `pattern` (ECMA 262, read as with
// its flag u), as sets of strings.
//
// Supported: literals, escapes (\d \w \s, in capitals their complements, \n \t
// \r \f \v \0 \cX \xHH \uHHHH \u{...}, general categories as \p{Lu} and
// \p{Letter}, and punctuation), classes, `.`, groups, alternatives, * + ? {m}
// {m,} {m,n}, ^ and $ and \b and \B anywhere, and look-ahead outside of
// repetitions. Without ^ or $ anything may come before or after. Look-behind
// and back references are errors that name them.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "text/grammar/string_language.h"
#include "text/grammar/syntax.h"

namespace weft::grammar {

// The strings in which `pattern` matches. Errors read "pattern at '<rest>':
// <why>", "pattern: <why>".
absl::StatusOr<StringLanguage> ParsePattern(absl::string_view pattern,
                                            Budget* budget);

// The same as the inside of a JSON string, also where the set of strings is
// too large to be made deterministic.
absl::StatusOr<Term> PatternInJson(absl::string_view pattern, Budget* budget);

// Texts that `pattern` matches from the beginning to the end.
absl::StatusOr<Syntax> TextsOfPattern(absl::string_view pattern);

}  // namespace weft::grammar
