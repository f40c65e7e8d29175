// Numbers of JSON as texts: within bounds, multiples of a number. As sets of
// strings (string_language.h), so that both are kept together.
//
// Digits decide, not doubles: 19.99 is a multiple of 0.01. What is bounded is
// written without exponent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "text/grammar/string_language.h"
#include "text/grammar/syntax.h"

namespace weft::grammar {

// A number in digits, without zeros around them.
struct Decimal {
  bool negative = false;
  std::string whole;     // "" is 0
  std::string fraction;  // "" is none

  bool zero() const { return whole.empty() && fraction.empty(); }
};

// Nothing where it has hundreds of digits.
std::optional<Decimal> DecimalOf(const nlohmann::ordered_json& number);
// Below, at or above zero.
int Compare(const Decimal& a, const Decimal& b);

struct NumberRules {
  struct Bound {
    Decimal at;
    bool exclusive = false;
  };
  std::optional<Bound> least, most;
  std::vector<Decimal> multiples, no_multiples;  // of these
  std::vector<Decimal> excluded;
  bool whole = false;       // integers only
  bool fractional = false;  // no integers
  // As many digits as there may be, and 1.0 is an integer.
  bool open = false;

  bool any() const {
    return !least && !most && multiples.empty() && no_multiples.empty() &&
           excluded.empty() && !fractional;
  }
  // Integers only, and no integers.
  bool none() const { return whole && fractional; }
};

// Whether a number fits.
bool Fits(const NumberRules& rules, const nlohmann::ordered_json& number);

// An error of kInvalidArgument where a multiple asks for too many states.
absl::StatusOr<StringLanguage> NumbersOf(const NumberRules& rules,
                                         Budget* budget);

// All spellings of one number without exponent; only the shortest, and one with
// zeros behind the point.
Term NumberTexts(const Decimal& number);

}  // namespace weft::grammar
