#include "text/jinja/whole.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace weft::jinja {

std::string WholeText(Whole number, int base) {
  const bool negative = number < 0;
  auto rest = static_cast<unsigned __int128>(number);
  if (negative) rest = 0 - rest;
  std::string text;
  do {
    text += "0123456789abcdef"[static_cast<int>(rest % base)];
    rest /= base;
  } while (rest > 0);
  if (negative) text += '-';
  std::reverse(text.begin(), text.end());
  return text;
}

std::optional<Whole> ParseWhole(absl::string_view digits, int base) {
  const bool negative = absl::ConsumePrefix(&digits, "-");
  if (digits.empty()) return std::nullopt;
  Whole number = 0;
  for (const char c : digits) {
    int digit = base;
    if (absl::ascii_isdigit(c)) digit = c - '0';
    if (absl::ascii_isalpha(c)) digit = absl::ascii_tolower(c) - 'a' + 10;
    // Downwards: there is one more number below zero than above.
    if (digit >= base || __builtin_mul_overflow(number, base, &number) ||
        __builtin_sub_overflow(number, digit, &number)) {
      return std::nullopt;
    }
  }
  if (negative) return number;
  if (__builtin_sub_overflow(Whole{0}, number, &number)) return std::nullopt;
  return number;
}

std::optional<Whole> Truncated(double number) {
  if (!(std::fabs(number) < std::ldexp(1.0, 127))) return std::nullopt;
  return static_cast<Whole>(number);
}

}  // namespace weft::jinja
