// Pieces of JSON as terms: what schemas and patterns are put together from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/grammar/syntax.h"

namespace weft::grammar {

// Names of rules that CommonRules makes.
inline constexpr char kSpaceRule[] = "space";
inline constexpr char kCharacterRule[] = "character";  // of a string
inline constexpr char kStringRule[] = "string";
inline constexpr char kNumberRule[] = "number";
inline constexpr char kNaturalNumberRule[] = "natural-number";  // no minus
inline constexpr char kIntegerRule[] = "integer";
inline constexpr char kValueRule[] = "value";
inline constexpr char kObjectRule[] = "object";
inline constexpr char kArrayRule[] = "array";

// `open`: numbers have up to kOpenDigits digits, on either side of the point;
// no number is beyond a double.
inline constexpr int64_t kOpenDigits = 100;
// `slash_escapes`: \/ may stand in strings.
std::vector<Rule> CommonRules(bool open = false, bool slash_escapes = true);

// "...".
Term Quoted(Term inside);
// Whole numbers from `least` to `most`, which are digits without zeros in
// front.
Term NaturalBetween(std::string least, const std::string& most);
// space , space
Term Comma();
Term Space();

}  // namespace weft::grammar
