// Whole numbers. Python's grow without end; these have 128 bits, which holds
// what messages carry (ids, sizes, sums of them), and more is an error, never a
// rounded number.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace weft::jinja {

using Whole = __int128;

// In base 2 to 16, small letters.
std::string WholeText(Whole number, int base = 10);

// Digits of base 2 to 36, with a minus or without; nullopt for anything else
// and for what is too large.
std::optional<Whole> ParseWhole(absl::string_view digits, int base = 10);

// Rounded towards zero; nullopt for what is too large or no number.
std::optional<Whole> Truncated(double number);

}  // namespace weft::jinja
