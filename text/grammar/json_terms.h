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

std::vector<Rule> CommonRules();

// Quoted: "...".
Term Quoted(Term inside);
// One character of a string out of these, written with its escape where it
// needs one.
Term StringCharacter(const std::vector<CodePoints>& ranges, bool negated);
// A string that is none of `names`, without escapes. It is nested as deeply as
// the longest is long: at most kMaxNameBytes.
inline constexpr size_t kMaxNameBytes = 200;
Term StringBut(std::vector<std::string> names);
// A whole number from `least` to `most`, which are at most 18 digits long.
Term IntegerBetween(int64_t least, int64_t most);
// space , space
Term Comma();
Term Space();

}  // namespace weft::grammar
