#include "text/jinja/format.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "text/jinja/operations.h"
#include "text/jinja/print.h"

namespace weft::jinja {
namespace {

constexpr int64_t kMaxWidth = 10000;

struct Conversion {
  bool left = false, zero = false, plus = false, space = false;
  int64_t width = 0, precision = -1;
  char letter = 0;
};

class PercentFormatter {
 public:
  PercentFormatter(Context& context, const Text& format, const Value& values)
      : context_(context), format_(format), values_(values) {}

  Value Run() {
    while (at_ < format_.size() && !context_.failed()) {
      if (!context_.Spend(1)) return Value();
      if (Current() != '%') {
        result_.push_back(format_[at_++]);
        continue;
      }
      ++at_;
      One();
    }
    const bool all_used =
        !values_.is(Value::Kind::kTuple) || next_ >= values_.items().size();
    if (!context_.failed() && !named_ &&
        (!all_used || (!values_.is(Value::Kind::kTuple) &&
                       !values_.is_mapping() && next_ == 0))) {
      return context_.Fail("%: there are more values than places for them");
    }
    return context_.failed() ? Value() : Value(std::move(result_));
  }

 private:
  char32_t Current() const {
    return at_ < format_.size() ? CodePoint(format_[at_]) : 0;
  }

  int64_t Number() {
    int64_t number = 0;
    while (Current() >= '0' && Current() <= '9') {
      number = std::min(number * 10 + static_cast<int64_t>(Current() - '0'),
                        kMaxWidth + 1);
      ++at_;
    }
    if (number > kMaxWidth) context_.Fail("%: a width is too large");
    return number;
  }

  Value NextValue() {
    if (!values_.is(Value::Kind::kTuple)) {
      if (next_++ == 0) return values_;
    } else if (next_ < values_.items().size()) {
      return values_.items()[next_++];
    }
    return context_.Fail("%: there are more places than values for them");
  }

  // Behind a percent sign.
  void One() {
    if (Current() == '%') {
      result_.push_back(format_[at_++]);
      return;
    }
    Value value;
    bool has_value = false;
    if (Current() == '(') {
      size_t end = at_;
      while (end < format_.size() && CodePoint(format_[end]) != ')') ++end;
      const Value key(format_.substr(at_ + 1, end - at_ - 1));
      at_ = std::min(end + 1, format_.size());
      if (!values_.is_mapping()) {
        context_.Fail("%: names want a mapping");
        return;
      }
      const Value* found = FindEntry(context_, values_.entries(), key);
      if (found == nullptr) {
        context_.Fail(absl::StrCat("%: there is no '", ToUtf8(key.text()),
                                   "' in the mapping"));
        return;
      }
      value = *found;
      has_value = named_ = true;
    }
    Conversion conversion;
    for (;; ++at_) {
      const char32_t c = Current();
      if (c == '-') {
        conversion.left = true;
      } else if (c == '0') {
        conversion.zero = true;
      } else if (c == '+') {
        conversion.plus = true;
      } else if (c == ' ') {
        conversion.space = true;
      } else {
        break;
      }
    }
    conversion.width = Number();
    if (Current() == '.') {
      ++at_;
      conversion.precision = Number();
    }
    const char32_t letter = Current();
    if (letter == 0 || letter >= 0x80) {
      context_.Fail("%: a conversion has no letter");
      return;
    }
    ++at_;
    conversion.letter = static_cast<char>(letter);
    if (!has_value) value = NextValue();
    if (!context_.failed()) Append(conversion, value);
  }

  void Append(const Conversion& conversion, const Value& value) {
    Text text;
    switch (conversion.letter) {
      case 's':
        AppendPrinted(context_, value, text);
        break;
      case 'r':
        AppendRepr(context_, value, text);
        break;
      case 'c':
        if (value.is_string() && value.text().size() == 1) {
          text = value.text();
        } else {
          context_.Fail("%c wants one character");
        }
        break;
      default:
        AppendNumber(conversion, value, text);
        return;
    }
    if (conversion.precision >= 0 &&
        static_cast<size_t>(conversion.precision) < text.size()) {
      text.resize(static_cast<size_t>(conversion.precision));
    }
    Pad(conversion, std::move(text));
  }

  void AppendNumber(const Conversion& conversion, const Value& value,
                    Text& text) {
    const std::string letters = "dixXofFeEgG";
    if (letters.find(conversion.letter) == letters.npos) {
      context_.Fail(absl::StrCat("%", std::string(1, conversion.letter),
                                 " is not supported"));
      return;
    }
    if (!value.is_number()) {
      context_.Fail(absl::StrCat("%", std::string(1, conversion.letter),
                                 " wants a number, not a value of type ",
                                 value.TypeName()));
      return;
    }
    std::string digits;
    const bool whole = letters.find(conversion.letter) < 5;
    if (whole) {
      const std::optional<Whole> integer =
          value.is_integer() ? value.whole() : Truncated(value.number());
      if (!integer.has_value()) {
        context_.Fail("%d wants a number of ordinary size");
        return;
      }
      const bool hexadecimal =
          conversion.letter == 'x' || conversion.letter == 'X';
      digits = WholeText(*integer, hexadecimal                ? 16
                                   : conversion.letter == 'o' ? 8
                                                              : 10);
      if (conversion.letter == 'X') absl::AsciiStrToUpper(&digits);
      const bool minus = *integer < 0;
      if (minus) digits.erase(0, 1);
      if (conversion.precision > static_cast<int64_t>(digits.size())) {
        digits.insert(0, conversion.precision - digits.size(), '0');
      }
      if (minus) digits.insert(0, "-");
    } else {
      const int precision =
          static_cast<int>(conversion.precision < 0
                               ? 6
                               : std::min<int64_t>(conversion.precision, 300));
      const double number = value.number();
      switch (conversion.letter) {
        case 'e':
          digits = absl::StrFormat("%.*e", precision, number);
          break;
        case 'E':
          digits = absl::StrFormat("%.*E", precision, number);
          break;
        case 'g':
          digits = absl::StrFormat("%.*g", precision, number);
          break;
        case 'G':
          digits = absl::StrFormat("%.*G", precision, number);
          break;
        default:
          digits = absl::StrFormat("%.*f", precision, number);
      }
    }
    const bool negative = digits[0] == '-';
    if (!negative && conversion.plus) digits.insert(0, "+");
    if (!negative && !conversion.plus && conversion.space) {
      digits.insert(0, " ");
    }
    const bool has_sign = digits[0] < '0' && digits[0] != '.';
    if (conversion.zero && !conversion.left &&
        conversion.width > static_cast<int64_t>(digits.size())) {
      digits.insert(has_sign ? 1 : 0, conversion.width - digits.size(), '0');
    }
    AppendAscii(digits, text);
    Pad(conversion, std::move(text));
  }

  void Pad(const Conversion& conversion, Text text) {
    const size_t width = static_cast<size_t>(conversion.width);
    if (!context_.Spend(conversion.width)) return;
    if (text.size() < width) {
      text.insert(conversion.left ? text.size() : 0, width - text.size(), ' ');
    }
    result_ += text;
  }

  Context& context_;
  const Text& format_;
  const Value& values_;
  Text result_;
  size_t at_ = 0, next_ = 0;
  bool named_ = false;
};

}  // namespace

Value FormatPercent(Context& context, const Text& format, const Value& values) {
  return PercentFormatter(context, format, values).Run();
}

Value FormatBraces(Context& context, const Text& format,
                   const Arguments& arguments) {
  Text result;
  size_t next = 0;
  for (size_t at = 0; at < format.size(); ++at) {
    if (!context.Spend(1)) return Value();
    const char32_t c = CodePoint(format[at]);
    const bool twice = at + 1 < format.size() && CodePoint(format[at + 1]) == c;
    if (c != '{' && c != '}') {
      result.push_back(format[at]);
      continue;
    }
    if (twice) {
      result.push_back(format[at++]);
      continue;
    }
    const size_t end = FindText(format, Text(1, '}'), at);
    if (c == '}' || end == Text::npos) {
      return context.Fail("format: a brace stands alone: write it twice");
    }
    const std::string field = ToUtf8(format.substr(at + 1, end - at - 1));
    at = end;
    const Value* value = nullptr;
    size_t place = 0;
    if (field.empty() || absl::SimpleAtoi(field, &place)) {
      if (field.empty()) place = next++;
      if (place < arguments.positional.size()) {
        value = &arguments.positional[place];
      }
    }
    for (const auto& [name, keyword] : arguments.keywords) {
      if (name == field) value = &keyword;
    }
    if (value == nullptr) {
      return context.Fail(absl::StrCat("format: '{", field,
                                       "}' is not among the arguments or is "
                                       "not supported"));
    }
    AppendPrinted(context, *value, result);
  }
  return Value(std::move(result));
}

}  // namespace weft::jinja
