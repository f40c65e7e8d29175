// Filters that make numbers.
#include <cmath>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "text/jinja/bound_arguments.h"
#include "text/jinja/filter_tables.h"
#include "text/jinja/operations.h"

namespace weft::jinja {
namespace {

// Longer ones are no numbers that can be held.
constexpr size_t kMaxDigits = 400;

std::optional<std::string> Digits(const Text& text) {
  if (text.size() > kMaxDigits) return std::nullopt;
  return ToUtf8(Strip(text, nullptr, true, true));
}

// "-12", "+0x1F" in base 16, ...
std::optional<Whole> ParseInteger(absl::string_view digits, int base) {
  const bool negative = absl::ConsumePrefix(&digits, "-");
  if (!negative) absl::ConsumePrefix(&digits, "+");
  const absl::string_view prefix = base == 16  ? "0x"
                                   : base == 8 ? "0o"
                                   : base == 2 ? "0b"
                                               : "";
  if (!prefix.empty() && absl::StartsWithIgnoreCase(digits, prefix)) {
    digits.remove_prefix(prefix.size());
  }
  const std::string text = absl::StrCat(negative ? "-" : "", digits);
  return ParseWhole(text, base);
}

std::optional<double> ParseFloat(const Value& value) {
  if (value.is_number()) return value.number();
  double number = 0;
  if (!value.is_string()) return std::nullopt;
  const auto digits = Digits(value.text());
  if (!digits.has_value() || !absl::SimpleAtod(*digits, &number)) {
    return std::nullopt;
  }
  return number;
}

Value Integer(const FilterCall& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"default", "base"});
  const int64_t base = bound.Integer(1, 10);
  if (base < 2 || base > 36) return context.Fail("int: no such base");
  if (call.input.is_integer()) return Value(call.input.whole());
  std::optional<Whole> result;
  if (call.input.is_string()) {
    const auto digits = Digits(call.input.text());
    if (digits.has_value()) {
      result = ParseInteger(*digits, static_cast<int>(base));
    }
  }
  if (!result.has_value()) {
    const std::optional<double> number = ParseFloat(call.input);
    if (number.has_value()) result = Truncated(*number);
  }
  if (result.has_value()) return Value(*result);
  return bound.Has(0) ? *bound.Get(0) : Value(int64_t{0});
}

Value Float(const FilterCall& call) {
  const BoundArguments bound(call.context, call.name, call.arguments,
                             {"default"});
  const std::optional<double> number = ParseFloat(call.input);
  if (number.has_value()) return Value(*number);
  return bound.Has(0) ? *bound.Get(0) : Value(0.0);
}

Value Absolute(const FilterCall& call) {
  const BoundArguments bound(call.context, call.name, call.arguments, {});
  if (!call.input.is_number()) return call.context.Fail("abs wants a number");
  return call.input.number() < 0 ? Negate(call.context, call.input)
                                 : call.input;
}

Value Round(const FilterCall& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"precision", "method"});
  const int64_t precision = bound.Integer(0, 0);
  Text common;
  AppendAscii("common", common);
  const Text method = bound.String(1, common);
  if (!call.input.is_number()) return context.Fail("round wants a number");
  if (precision < 0 || precision > 300) {
    return context.Fail("round: the precision must be 0 to 300");
  }
  const double number = call.input.number();
  if (SameText(method, "common")) {
    if (call.input.is_integer()) return call.input;
    double rounded = number;
    if (std::isfinite(number)) {
      // Exact ties go to the even digit, as everywhere in Python.
      (void)absl::SimpleAtod(
          absl::StrFormat("%.*f", static_cast<int>(precision), number),
          &rounded);
    }
    return Value(rounded);
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (SameText(method, "ceil")) return Value(std::ceil(number * scale) / scale);
  if (SameText(method, "floor")) {
    return Value(std::floor(number * scale) / scale);
  }
  return context.Fail("round: the method is common, ceil or floor");
}

Value Length(const FilterCall& call) {
  const BoundArguments bound(call.context, call.name, call.arguments, {});
  const std::optional<int64_t> length = jinja::Length(call.context, call.input);
  return length.has_value() ? Value(*length) : Value();
}

Value Sum(const FilterCall& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"attribute", "start"});
  Value sum = bound.Has(1) ? *bound.Get(1) : Value(int64_t{0});
  for (const Value& item : Iterate(context, call.input)) {
    const bool by_attribute = bound.Has(0) && !bound.Get(0)->is_none();
    sum = Arithmetic(context, "+", sum,
                     by_attribute
                         ? AttributeOf(context, item, *bound.Get(0), nullptr)
                         : item);
    if (context.failed()) return Value();
  }
  return sum;
}

constexpr FilterRow kRows[] = {
    {"int", Integer},   {"float", Float},  {"abs", Absolute}, {"round", Round},
    {"length", Length}, {"count", Length}, {"sum", Sum},
};

}  // namespace

absl::Span<const FilterRow> NumberFilters() { return kRows; }

}  // namespace weft::jinja
