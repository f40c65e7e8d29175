// Arguments as Python's literals, and as braces with bare keys.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "text/answer/argument_reader.h"
#include "text/answer/markers.h"

namespace weft::answer {
namespace {

bool IsWordByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-' || c == '+' || c == '.' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool IsHex(absl::string_view digits) {
  return std::all_of(digits.begin(), digits.end(), [](char c) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
}

// Digits to the base 2, 8 or 16 in decimals.
std::string Decimals(absl::string_view digits, int base) {
  std::string made = "0";  // the last digit first
  for (const char c : digits) {
    int carry = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    if (carry >= base) return "";
    for (char& digit : made) {
      carry += (digit - '0') * base;
      digit = static_cast<char>('0' + carry % 10);
      carry /= 10;
    }
    for (; carry > 0; carry /= 10) {
      made.push_back(static_cast<char>('0' + carry % 10));
    }
  }
  std::reverse(made.begin(), made.end());
  return made;
}

// A number as Python has it in JSON, with its spelling where JSON has that,
// too; empty: it is none.
std::string NumberJson(absl::string_view word) {
  constexpr size_t kMostDigits = 1000;
  const bool minus = absl::ConsumePrefix(&word, "-");
  if (!minus) absl::ConsumePrefix(&word, "+");
  const bool based = word.size() > 2 && word[0] == '0' &&
                     absl::ascii_isalpha(static_cast<unsigned char>(word[1]));
  // Underscores stand between digits.
  std::string plain;
  for (size_t i = 0; i < word.size(); ++i) {
    const auto is_digit = [&](size_t at) {
      return at < word.size() &&
             absl::ascii_isxdigit(static_cast<unsigned char>(word[at])) != 0;
    };
    if (word[i] != '_') {
      plain.push_back(word[i]);
    } else if (!is_digit(i + 1) ||
               !(i > 0 && (is_digit(i - 1) || (based && i == 2)))) {
      return "";
    }
  }
  if (based && plain.size() <= kMostDigits) {
    const size_t kind = absl::string_view("xXoObB").find(plain[1]);
    const absl::string_view digits = absl::string_view(plain).substr(2);
    if (kind == absl::string_view::npos || !IsHex(digits)) return "";
    plain = Decimals(digits, kind < 2 ? 16 : kind < 4 ? 8 : 2);
  }
  const size_t point = plain.find('.');
  if (point != std::string::npos) {
    const auto digit_at = [&](size_t at) {
      return at < plain.size() &&
             absl::ascii_isdigit(static_cast<unsigned char>(plain[at])) != 0;
    };
    const bool before = point > 0 && digit_at(point - 1);
    const bool behind = digit_at(point + 1);
    if (!before && !behind) return "";
    if (!behind) plain.insert(point + 1, "0");
    if (!before) plain.insert(point, "0");
  }
  const bool starts = !plain.empty() &&
                      absl::ascii_isdigit(static_cast<unsigned char>(plain[0]));
  if (minus) plain.insert(0, "-");
  return starts && IsJson(plain) ? plain : "";
}

// A word of either language in JSON; empty: it is none.
std::string WordJson(const std::string& word) {
  if (word == "True") return "true";
  if (word == "False") return "false";
  if (word == "None") return "null";
  return IsJson(word) ? word : NumberJson(word);
}

// JSON that is written and checked at the same time.
class Writer {
 public:
  bool Put(absl::string_view text, std::string* json) {
    for (const char c : text) {
      scan_ = scanner_.Feed(c);
      if (scan_ == Scan::kBad) return false;
    }
    absl::StrAppend(json, text);
    return true;
  }
  bool done() const { return scan_ == Scan::kDone; }
  bool in_string() const { return scanner_.in_string(); }
  size_t depth() const { return scanner_.depth(); }

 private:
  JsonScanner scanner_;
  Scan scan_ = Scan::kMore;
};

// One value as Python writes it.
//
// It is told as it comes, but for what is in parentheses: whether these are a
// tuple's, only their end tells.
class PythonValue {
 public:
  // How many bytes it used; 0 to wait for more. `*good` is false where it is no
  // value. What follows the value is left.
  size_t Read(absl::string_view text, bool* good, std::string* json) {
    if (quote_ != 0) return StringPart(text, good, json);
    const char c = text[0];
    if (absl::ascii_isspace(static_cast<unsigned char>(c))) return 1;
    size_t word = 0;
    while (word < text.size() && IsWordByte(text[word])) ++word;
    if (word > 0 && word == text.size()) return 0;
    if (text[word] == '"' || text[word] == '\'') {
      return OpenString(text, word, good, json);
    }
    // Behind a string there was no other one.
    if (after_string_) {
      after_string_ = false;
      *good = Put("\"", json);
      if (*good) ItemEnded();
      if (!*good || done_) return 0;
    }
    if (word > 0) {
      std::string written = WordJson(std::string(text.substr(0, word)));
      *good = !written.empty() && BeginItem(json);
      // Names of members are strings in JSON.
      if (!brackets_.empty() && brackets_.back().wants_key) {
        written = absl::StrCat("\"", written, "\"");
      }
      *good = *good && Put(written, json);
      ItemEnded();
      return word;
    }
    *good = Sign(c, json);
    return 1;
  }
  // Known only when something else has come behind a string.
  bool done() const { return done_; }

 private:
  struct Bracket {
    char open;
    size_t begins;  // in held_
    bool wants_key;
    // Whether an item has come since the last comma or colon; and the commas.
    bool full = false, comma = false, commas = false;
  };

  bool Put(absl::string_view text, std::string* json) {
    if (parentheses_ == 0) return writer_.Put(text, json);
    absl::StrAppend(&held_, text);
    return true;
  }

  bool BeginItem(std::string* json) {
    if (brackets_.empty()) return true;
    Bracket& in = brackets_.back();
    if (in.full) return false;
    const bool comma = std::exchange(in.comma, false);
    return !comma || Put(", ", json);
  }

  void ItemEnded() {
    if (brackets_.empty()) {
      done_ = true;
    } else {
      brackets_.back().full = true;
    }
  }

  bool Sign(char c, std::string* json) {
    if (c == '[' || c == '{' || c == '(') {
      if (!BeginItem(json) || brackets_.size() == JsonScanner::kMaxDepth) {
        return false;
      }
      if (c == '(') ++parentheses_;
      brackets_.push_back({c, held_.size(), c == '{'});
      return Put(c == '{' ? "{" : "[", json);
    }
    if (brackets_.empty()) return false;
    Bracket& in = brackets_.back();
    if (c == ',') {
      const bool full = std::exchange(in.full, false);
      in.comma = in.commas = true;
      in.wants_key = in.open == '{';
      return full;
    }
    if (c == ':') {
      const bool names = in.wants_key && in.full;
      in.full = in.wants_key = false;
      return names && Put(": ", json);
    }
    return (c == ']' || c == '}' || c == ')') && Close(c, json);
  }

  bool Close(char c, std::string* json) {
    const Bracket in = brackets_.back();
    if (in.open != (c == ']' ? '[' : c == '}' ? '{' : '(')) return false;
    // A comma behind the last is nothing, but in (1,).
    bool good = true;
    if (in.open == '(' && in.full && !in.commas) {
      held_.erase(in.begins, 1);
    } else {
      good = Put(c == '}' ? "}" : "]", json);
    }
    brackets_.pop_back();
    if (c == ')' && --parentheses_ == 0) {
      good = good && Put(std::exchange(held_, {}), json);
    }
    ItemEnded();
    return good;
  }

  // At a quote, behind `prefix` bytes that tell how to read it.
  size_t OpenString(absl::string_view text, size_t prefix, bool* good,
                    std::string* json) {
    const absl::string_view how = text.substr(0, prefix);
    const bool raw = how == "r" || how == "R";
    *good = prefix == 0 || raw || how == "u" || how == "U";
    if (!*good) return 0;
    const absl::string_view quotes = text.substr(prefix);
    const std::string three(3, quotes[0]);
    size_t size = Begins(quotes, three) == Match::kYes ? 3 : 1;
    if (size == 1 && Begins(quotes, three) == Match::kMore) return 0;
    // One behind another is its second part.
    if (!std::exchange(after_string_, false)) {
      *good = BeginItem(json) && Put("\"", json);
    }
    raw_ = raw;
    quote_ = quotes[0];
    quotes_ = std::string(size, quote_);
    return prefix + size;
  }

  size_t StringPart(absl::string_view text, bool* good, std::string* json) {
    const Match closes = Begins(text, quotes_);
    if (closes == Match::kMore) return 0;
    if (closes == Match::kYes) {
      quote_ = 0;
      after_string_ = true;
      return quotes_.size();
    }
    const char c = text[0];
    if (c == '\\') {
      if (text.size() < 2) return 0;
      if (!raw_) return Escape(text, good, json);
      *good = Put(absl::StrCat("\\\\", JsonEscaped(text.substr(1, 1))), json);
      return 2;
    }
    *good = (c != '\n' || quotes_.size() == 3) &&
            Put(JsonEscaped(text.substr(0, 1)), json);
    return 1;
  }

  static std::string Unit(uint32_t unit) {
    return absl::StrFormat("\\u%04x", unit);
  }

  // \ and what follows, at least one byte.
  size_t Escape(absl::string_view text, bool* good, std::string* json) {
    const char c = text[1];
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (text.size() < 2 + digits) return 0;
    std::string spelled;
    if (digits > 0) {
      uint32_t code = 0;
      const absl::string_view hex = text.substr(2, digits);
      *good = IsHex(hex) && absl::SimpleHexAtoi(hex, &code) && code <= 0x10FFFF;
      spelled = code < 0x10000 ? Unit(code)
                               : absl::StrCat(Unit(0xD7C0 + (code >> 10)),
                                              Unit(0xDC00 + (code & 0x3FF)));
    } else if (c >= '0' && c <= '7') {
      uint32_t code = 0;
      while (digits < 3 && digits + 1 < text.size() &&
             text[digits + 1] >= '0' && text[digits + 1] <= '7') {
        code = code * 8 + (text[1 + digits++] - '0');
      }
      if (digits < 3 && digits + 1 == text.size()) return 0;
      spelled = Unit(code);
      --digits;  // the first stands for the letter
    } else if (absl::string_view("\"\\nrtbf").find(c) !=
               absl::string_view::npos) {
      spelled = std::string(text.substr(0, 2));
    } else if (c == 'a' || c == 'v') {
      spelled = Unit(c == 'a' ? 7 : 11);
    } else if (c == '\'') {
      spelled = "'";
    } else if (c != '\n') {
      // As Python does; \N{..} too, as no table of names is here.
      spelled = absl::StrCat("\\\\", JsonEscaped(text.substr(1, 1)));
    }
    *good = *good && Put(spelled, json);
    return 2 + digits;
  }

  Writer writer_;
  std::vector<Bracket> brackets_;
  int parentheses_ = 0;  // among them
  std::string held_;     // from the first parenthesis on
  char quote_ = 0;       // of the string that is open, if any
  std::string quotes_;   // its ends
  bool raw_ = false, after_string_ = false, done_ = false;
};

class Python : public ArgumentReader {
 public:
  Scan Read(absl::string_view text, bool at_end, size_t* used,
            std::string* json) override {
    for (*used = 0; *used < text.size();) {
      bool good = true;
      const absl::string_view rest = text.substr(*used);
      const size_t now = value_.has_value() ? value_->Read(rest, &good, json)
                                            : NamePart(rest, &good, json);
      if (!good) return Scan::kBad;
      *used += now;
      if (value_.has_value() && value_->done()) {
        value_.reset();
        wants_comma_ = true;
      } else if (now == 0) {
        return at_end ? Scan::kBad : Scan::kMore;
      }
      if (done_) return Scan::kDone;
    }
    return Scan::kMore;
  }

 private:
  // How many bytes it used; 0 to wait for more.
  size_t NamePart(absl::string_view text, bool* good, std::string* json) {
    const char c = text[0];
    if (absl::ascii_isspace(static_cast<unsigned char>(c))) return 1;
    if (c == ')') {
      done_ = true;
      absl::StrAppend(json, any_ ? "}" : "{}");
      return 1;
    }
    if (c == ',') {
      *good = wants_comma_;
      wants_comma_ = false;
      return 1;
    }
    size_t end = 0;
    while (end < text.size() && IsWordByte(text[end])) ++end;
    *good = end > 0 && !wants_comma_;
    if (!*good || end == text.size()) return 0;
    const size_t equals = SkipSpace(text, end);
    if (equals == text.size()) return 0;
    *good = text[equals] == '=';
    if (!*good) return 0;
    absl::StrAppend(json, any_ ? ", " : "{", "\"",
                    JsonEscaped(text.substr(0, end)), "\": ");
    any_ = true;
    value_.emplace();
    return equals + 1;
  }

  std::optional<PythonValue> value_;  // that is read
  bool any_ = false, wants_comma_ = false, done_ = false;
};

class Braces : public ArgumentReader {
 public:
  explicit Braces(absl::string_view quote) : quote_(quote) {}

  Scan Read(absl::string_view text, bool at_end, size_t* used,
            std::string* json) override {
    for (*used = 0; *used < text.size();) {
      bool good = true;
      const absl::string_view rest = text.substr(*used);
      size_t now = 1;
      if (in_string_) {
        now = StringPart(rest, at_end, &good, json);
      } else if (writer_.in_string()) {
        good = writer_.Put(rest.substr(0, 1), json);
      } else {
        now = Part(rest, at_end, &good, json);
      }
      if (!good) return Scan::kBad;
      if (now == 0) return at_end ? Scan::kBad : Scan::kMore;
      *used += now;
      if (writer_.done()) return Scan::kDone;
    }
    return Scan::kMore;
  }

 private:
  size_t StringPart(absl::string_view text, bool at_end, bool* good,
                    std::string* json) {
    const Match match = Begins(text, quote_);
    if (match == Match::kMore && !at_end) return 0;
    if (match == Match::kYes) {
      in_string_ = false;
      *good = writer_.Put("\"", json);
      return quote_.size();
    }
    *good = writer_.Put(JsonEscaped(text.substr(0, 1)), json);
    return 1;
  }

  size_t Part(absl::string_view text, bool at_end, bool* good,
              std::string* json) {
    const char c = text[0];
    if (absl::ascii_isspace(static_cast<unsigned char>(c))) return 1;
    const Match match = Begins(text, quote_);
    if (match == Match::kMore && !at_end) return 0;
    if (match == Match::kYes) {
      in_string_ = true;
      wants_key_ = false;
      *good = writer_.Put("\"", json);
      return quote_.size();
    }
    if (c == '"') {  // as JSON has it
      wants_key_ = false;
      *good = writer_.Put("\"", json);
      return 1;
    }
    const bool opens = c == '{' || c == '[';
    const bool closes = c == '}' || c == ']';
    if (opens || closes || c == ',' || c == ':') {
      if (opens) open_.push_back(c);
      if (closes && !open_.empty()) open_.pop_back();
      wants_key_ =
          (c == '{' || c == ',') && !open_.empty() && open_.back() == '{';
      *good = writer_.Put(c == ','   ? ", "
                          : c == ':' ? ": "
                                     : std::string(1, c),
                          json);
      return 1;
    }
    const absl::string_view ends = wants_key_ ? ":{}[]," : ",{}[]:";
    const size_t end = text.find_first_of(ends);
    if (end == absl::string_view::npos) return 0;
    const std::string word(absl::StripAsciiWhitespace(text.substr(0, end)));
    const std::string written =
        wants_key_ ? absl::StrCat("\"", JsonEscaped(word), "\"")
                   : WordJson(word);
    wants_key_ = false;
    *good = !written.empty() && writer_.Put(written, json);
    return end;
  }

  const absl::string_view quote_;
  Writer writer_;
  std::vector<char> open_;
  bool in_string_ = false, wants_key_ = false;
};

}  // namespace

std::string PythonJson(absl::string_view text) {
  // What follows tells that a word or a string has ended.
  const std::string closed = absl::StrCat(text, ",");
  PythonValue value;
  std::string json;
  for (size_t at = 0; !value.done();) {
    bool good = true;
    const size_t now =
        value.Read(absl::string_view(closed).substr(at), &good, &json);
    at += now;
    if (!good || at > text.size()) return "";
    if (now == 0 && !value.done()) return "";
    if (value.done() && at != text.size()) return "";
  }
  return json;
}

std::unique_ptr<ArgumentReader> PythonArguments() {
  return std::make_unique<Python>();
}

std::unique_ptr<ArgumentReader> BraceArguments(absl::string_view quote) {
  return std::make_unique<Braces>(quote);
}

}  // namespace weft::answer
