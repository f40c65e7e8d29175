// Operators on numbers, and what + * % mean for strings and lists.
//
// What is too large for a whole number (whole.h) is an error.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "text/jinja/format.h"
#include "text/jinja/limits.h"
#include "text/jinja/operations.h"

namespace weft::jinja {
namespace {

Value TooLarge(Context& context) {
  return context.Fail("the result is too large for a whole number");
}

Value Power(Context& context, Whole base, Whole exponent) {
  if (exponent < 0) {
    return Value(
        std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  Whole result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      return TooLarge(context);
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      return TooLarge(context);
    }
  }
  return Value(result);
}

// Quotients are rounded down and remainders have the divisor's sign.
Value Divide(Context& context, bool remainder, Whole a, Whole b) {
  if (b == 0) return context.Fail("division by zero");
  if (b == -1) {
    if (remainder) return Value(Whole{0});
    Whole result;
    if (__builtin_sub_overflow(Whole{0}, a, &result)) return TooLarge(context);
    return Value(result);
  }
  Whole quotient = a / b, rest = a % b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    --quotient;
    rest += b;
  }
  return Value(remainder ? rest : quotient);
}

Value OfIntegers(Context& context, absl::string_view op, Whole a, Whole b) {
  Whole result = 0;
  bool overflow = false;
  if (op == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (op == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (op == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (op == "**") {
    return Power(context, a, b);
  } else {
    return Divide(context, op == "%", a, b);
  }
  return overflow ? TooLarge(context) : Value(result);
}

Value OfFloats(Context& context, absl::string_view op, double a, double b) {
  if (op == "+") return Value(a + b);
  if (op == "-") return Value(a - b);
  if (op == "*") return Value(a * b);
  if (op == "**") return Value(std::pow(a, b));
  if (b == 0) return context.Fail("division by zero");
  if (op == "/") return Value(a / b);
  const double quotient = std::floor(a / b);
  if (op == "//") return Value(quotient);
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return Value(rest);
}

Value Repeat(Context& context, const Value& whole, int64_t count) {
  const int64_t size = whole.is_string()
                           ? static_cast<int64_t>(whole.text().size())
                           : static_cast<int64_t>(whole.items().size());
  if (count < 0 || size == 0) count = 0;
  int64_t total;
  if (__builtin_mul_overflow(size, count, &total)) total = INT64_MAX;
  if (!context.Spend(total)) return Value();
  if (whole.is_string()) {
    Text text;
    text.reserve(static_cast<size_t>(total));
    for (int64_t i = 0; i < count; ++i) text += whole.text();
    return Value(std::move(text));
  }
  // Before the copies are made: MakeList asks afterwards.
  if (total > INT64_MAX / kWorkPerNode ||
      !context.Spend(total * kWorkPerNode)) {
    return Value();
  }
  std::vector<Value> items;
  for (int64_t i = 0; i < count; ++i) {
    items.insert(items.end(), whole.items().begin(), whole.items().end());
  }
  return Value::MakeList(context, std::move(items),
                         whole.is(Value::Kind::kTuple));
}

}  // namespace

Value Arithmetic(Context& context, absl::string_view op, const Value& a,
                 const Value& b) {
  if (!context.Spend(1)) return Value();
  if (op == "%" && a.is_string()) return FormatPercent(context, a.text(), b);
  for (const Value* value : {&a, &b}) {
    if (value->is_undefined()) return context.Fail(value->why_undefined());
  }
  if (a.is_number() && b.is_number()) {
    if (a.is_integer() && b.is_integer() && op != "/") {
      return OfIntegers(context, op, a.whole(), b.whole());
    }
    return OfFloats(context, op, a.number(), b.number());
  }
  if (op == "+" && a.is_string() && b.is_string()) {
    if (!context.Spend(
            static_cast<int64_t>(a.text().size() + b.text().size()))) {
      return Value();
    }
    return Value(a.text() + b.text());
  }
  if (op == "+" && a.is_sequence() && a.kind() == b.kind()) {
    std::vector<Value> items = a.items();
    items.insert(items.end(), b.items().begin(), b.items().end());
    return Value::MakeList(context, std::move(items),
                           a.is(Value::Kind::kTuple));
  }
  const auto repeats = [](const Value& x) {
    return x.is_string() || x.is_sequence();
  };
  if (op == "*" && repeats(a) && b.is_integer()) {
    return Repeat(context, a, b.integer());
  }
  if (op == "*" && repeats(b) && a.is_integer()) {
    return Repeat(context, b, a.integer());
  }
  return context.Fail(absl::StrCat("'", op,
                                   "' does not go with values of type ",
                                   a.TypeName(), " and ", b.TypeName()));
}

Value Negate(Context& context, const Value& value) {
  if (value.is_undefined()) return context.Fail(value.why_undefined());
  if (value.is_integer()) {
    return OfIntegers(context, "-", 0, value.whole());
  }
  if (value.is_number()) return Value(-value.number());
  return context.Fail(
      absl::StrCat("a value of type ", value.TypeName(), " has no sign"));
}

}  // namespace weft::jinja
