#include "text/jinja/lexer.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "text/jinja/limits.h"

namespace weft::jinja {
namespace {

constexpr absl::string_view kOperators[] = {
    // Longest first.
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

bool IsNameByte(char c) {
  return absl::ascii_isalnum(c) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string NormalizeNewlines(absl::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text.push_back(source[i]);
    }
  }
  if (absl::EndsWith(text, "\n")) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(absl::string_view source)
      : normal_(NormalizeNewlines(source)), source_(normal_) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (status_.ok() && at_ < source_.size()) Data();
    if (!status_.ok()) return status_;
    Add(Token::kEnd, "end of the template");
    return std::move(tokens_);
  }

 private:
  void Fail(absl::string_view why) {
    if (!status_.ok()) return;
    status_ =
        absl::InvalidArgumentError(absl::StrCat("line ", line_, ": ", why));
  }

  bool Next(absl::string_view text) const {
    return absl::StartsWith(source_.substr(at_), text);
  }

  void Skip(size_t count) {
    line_ += static_cast<int>(
        std::count(source_.begin() + at_, source_.begin() + at_ + count, '\n'));
    at_ += count;
  }

  void SkipSpace() {
    size_t end = at_;
    while (end < source_.size() && absl::ascii_isspace(source_[end])) ++end;
    Skip(end - at_);
  }

  void Add(Token::Kind kind, absl::string_view text) {
    tokens_.push_back({kind, line_, std::string(text), {}});
  }

  void AddData(absl::string_view text) {
    if (text.empty()) return;
    tokens_.push_back({Token::kData, line_, "", FromUtf8(text)});
  }

  // What stays of `data` before a tag with this sign.
  absl::string_view Trimmed(absl::string_view data, char sign, bool strips) {
    if (sign == '-') return absl::StripTrailingAsciiWhitespace(data);
    if (sign == '+' || !strips) return data;
    const size_t newline = data.rfind('\n');
    const size_t line = newline == data.npos ? 0 : newline + 1;
    if (newline == data.npos && !line_starting_) return data;
    const bool blank =
        std::all_of(data.begin() + line, data.end(), absl::ascii_isspace);
    return blank ? data.substr(0, line) : data;
  }

  // Behind a closing brace: what it removes. `at_` stands behind it.
  void AfterTag(char sign, bool trims_newline) {
    if (sign == '-') {
      SkipSpace();
    } else if (sign != '+' && trims_newline && Next("\n")) {
      Skip(1);
    }
    line_starting_ = at_ > 0 && source_[at_ - 1] == '\n';
  }

  char SignAt(size_t at) const {
    if (at >= source_.size()) return 0;
    return source_[at] == '-' || source_[at] == '+' ? source_[at] : 0;
  }

  // Plain text and the tag that ends it.
  void Data() {
    size_t begin = at_;
    do {
      begin = source_.find('{', begin);
      if (begin == source_.npos || begin + 1 >= source_.size()) {
        AddData(source_.substr(at_));
        Skip(source_.size() - at_);
        return;
      }
      const char next = source_[begin + 1];
      if (next == '{' || next == '%' || next == '#') break;
      ++begin;
    } while (true);
    const char kind = source_[begin + 1];
    const char sign = SignAt(begin + 2);
    const absl::string_view data = source_.substr(at_, begin - at_);
    AddData(Trimmed(data, sign, kind != '{'));
    Skip(data.size() + 2 + (sign != 0 ? 1 : 0));
    if (kind == '#') {
      Comment();
    } else if (kind == '%' && IsRaw("raw")) {
      Raw();
    } else {
      Tag(kind == '%');
    }
  }

  void Comment() {
    const size_t end = source_.find("#}", at_);
    if (end == source_.npos) return Fail("a comment has no end: write #}");
    const char sign = end > at_ ? SignAt(end - 1) : 0;
    Skip(end + 2 - at_);
    AfterTag(sign, true);
  }

  // Whether a tag that says only `word` goes on here.
  bool IsRaw(absl::string_view word) const {
    absl::string_view rest =
        absl::StripLeadingAsciiWhitespace(source_.substr(at_));
    if (!absl::ConsumePrefix(&rest, word)) return false;
    rest = absl::StripLeadingAsciiWhitespace(rest);
    return absl::StartsWith(rest, "%}") || absl::StartsWith(rest, "-%}") ||
           (word == "endraw" && absl::StartsWith(rest, "+%}"));
  }

  // To behind the tag's %}; returns the sign before it.
  char SkipRawTag() {
    const size_t end = source_.find("%}", at_);
    const char sign = SignAt(end - 1);
    Skip(end + 2 - at_);
    return sign;
  }

  void Raw() {
    AfterTag(SkipRawTag(), false);
    const size_t begin = at_;
    for (size_t end = source_.find("{%", at_); end != source_.npos;
         end = source_.find("{%", end + 2)) {
      const char sign = SignAt(end + 2);
      const size_t here = at_;
      at_ = end + 2 + (sign != 0 ? 1 : 0);
      const bool found = IsRaw("endraw");
      at_ = here;
      if (!found) continue;
      const absl::string_view data = source_.substr(begin, end - begin);
      AddData(Trimmed(data, sign, true));
      Skip(end + 2 - at_);
      AfterTag(SkipRawTag(), true);
      return;
    }
    Fail("a raw block has no end: write {% endraw %}");
  }

  // The inside of {{ }} or {% %}.
  void Tag(bool block) {
    Add(block ? Token::kBlockBegin : Token::kPrintBegin, block ? "{%" : "{{");
    const absl::string_view end = block ? "%}" : "}}";
    std::string open;  // brackets
    while (status_.ok()) {
      SkipSpace();
      if (at_ >= source_.size()) {
        return Fail(absl::StrCat("a tag has no end: write ", end));
      }
      const char sign = SignAt(at_);
      if (open.empty() && (Next(end) || ((sign == '-' || (sign && block)) &&
                                         source_.substr(at_ + 1, 2) == end))) {
        Add(block ? Token::kBlockEnd : Token::kPrintEnd, end);
        const bool has_sign = !Next(end);
        Skip(2 + (has_sign ? 1 : 0));
        AfterTag(has_sign ? sign : 0, block);
        return;
      }
      Element(open);
    }
  }

  void Element(std::string& open) {
    const char c = source_[at_];
    if (c == '\'' || c == '"') return String(c);
    if (absl::ascii_isdigit(c)) return Number();
    if (IsNameByte(c)) {
      size_t end = at_;
      while (end < source_.size() && IsNameByte(source_[end])) ++end;
      Add(Token::kName, source_.substr(at_, end - at_));
      return Skip(end - at_);
    }
    for (const absl::string_view op : kOperators) {
      if (!Next(op)) continue;
      if (op == "(" || op == "[" || op == "{") {
        if (open.size() >= kMaxParseDepth) {
          return Fail("brackets are nested too deeply");
        }
        open.push_back(op == "(" ? ')' : op == "[" ? ']' : '}');
      }
      if (op == ")" || op == "]" || op == "}") {
        if (open.empty() || open.back() != c) {
          return Fail(absl::StrCat("'", op, "' closes nothing"));
        }
        open.pop_back();
      }
      Add(Token::kOperator, op);
      return Skip(op.size());
    }
    std::string shown;
    AppendUtf8(FromUtf8(source_.substr(at_, 4))[0], shown);
    Fail(absl::StrCat("'", shown, "' is not expected here"));
  }

  void Number() {
    const auto digits = [&](size_t from) {
      while (from < source_.size() &&
             (absl::ascii_isdigit(source_[from]) || source_[from] == '_')) {
        ++from;
      }
      return from;
    };
    const auto digit_at = [&](size_t at) {
      return at < source_.size() && absl::ascii_isdigit(source_[at]);
    };
    size_t end = digits(at_);
    Token::Kind kind = Token::kInteger;
    // In `x.0.5` these are two places in lists.
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    if (!after_dot && end < source_.size() && source_[end] == '.' &&
        digit_at(end + 1)) {
      kind = Token::kFloat;
      end = digits(end + 1);
    }
    if (!after_dot && end < source_.size() &&
        (source_[end] == 'e' || source_[end] == 'E')) {
      const size_t exponent = end + 1 + (SignAt(end + 1) != 0 ? 1 : 0);
      if (digit_at(exponent)) {
        kind = Token::kFloat;
        end = digits(exponent);
      }
    }
    std::string text(source_.substr(at_, end - at_));
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    if (kind == Token::kInteger && text.size() > 1 && text[0] == '0' &&
        text.find_first_not_of('0') != text.npos) {
      return Fail(absl::StrCat("'", text.substr(0, 20),
                               "': numbers do not begin with 0"));
    }
    Add(kind, text);
    Skip(end - at_);
  }

  void String(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) {
      end += source_[end] == '\\' ? 2 : 1;
    }
    if (end >= source_.size()) return Fail("a string has no end");
    const absl::string_view body = source_.substr(at_ + 1, end - at_ - 1);
    Token token{Token::kString, line_, "a string", {}};
    if (!Unescape(FromUtf8(body), token.characters)) return;
    tokens_.push_back(std::move(token));
    Skip(end + 1 - at_);
  }

  // Python's escapes. What is none stays as it is written.
  bool Unescape(const Text& body, Text& text) {
    for (size_t i = 0; i < body.size(); ++i) {
      if (body[i] != '\\' || i + 1 >= body.size()) {
        text.push_back(body[i]);
        continue;
      }
      const char32_t c = body[++i];
      static constexpr absl::string_view kNames = "abfnrtv\\'\"";
      static constexpr absl::string_view kMeant = "\a\b\f\n\r\t\v\\'\"";
      const size_t place =
          c < 0x80 ? kNames.find(static_cast<char>(c)) : kNames.npos;
      if (place != kNames.npos) {
        text.push_back(static_cast<unsigned char>(kMeant[place]));
      } else if (c == '\n') {
        // The line goes on.
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        const std::string hex = ToUtf8(body.substr(i + 1, digits));
        uint32_t value = 0;
        if (hex.size() != digits ||
            !std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit) ||
            !absl::SimpleHexAtoi(hex, &value) || value > 0x10FFFF) {
          Fail("an escape in a string is cut off or names no character");
          return false;
        }
        text.push_back(value);
        i += digits;
      } else if (c >= '0' && c <= '7') {
        char32_t value = 0;
        size_t end = i;
        while (end < body.size() && end < i + 3 && body[end] >= '0' &&
               body[end] <= '7') {
          value = value * 8 + (body[end++] - '0');
        }
        text.push_back(value);
        i = end - 1;
      } else if (c == 'N') {
        Fail("\\N{...} in a string is not supported: write \\u and the number");
        return false;
      } else {
        text.push_back('\\');
        text.push_back(c);
      }
    }
    return true;
  }

  const std::string normal_;
  const absl::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source) {
  if (source.size() > kMaxSource) {
    return absl::ResourceExhaustedError(
        absl::StrCat("line 1: the template has ", source.size(),
                     " bytes: at most ", kMaxSource, " are allowed"));
  }
  return Lexer(source).Run();
}

}  // namespace weft::jinja
