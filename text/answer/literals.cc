// Arguments as Python's literals, and as braces with bare keys.
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "text/answer/argument_reader.h"
#include "text/answer/markers.h"

namespace weft::answer {
namespace {

bool IsWordByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-' || c == '+' || c == '.';
}

// A word of either language in JSON; empty: it is none.
std::string WordJson(const std::string& word) {
  if (word == "True") return "true";
  if (word == "False") return "false";
  if (word == "None") return "null";
  return IsJson(word) ? word : "";
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

class Python : public ArgumentReader {
 public:
  Scan Read(absl::string_view text, bool at_end, size_t* used,
            std::string* json) override {
    for (*used = 0; *used < text.size();) {
      size_t now = 1;
      bool good = true;
      if (quote_ != 0) {
        now = StringPart(text.substr(*used), &good, json);
      } else if (in_value_) {
        now = ValuePart(text.substr(*used), &good, json);
      } else {
        now = NamePart(text.substr(*used), &good, json);
      }
      if (!good) return Scan::kBad;
      if (now == 0) return at_end ? Scan::kBad : Scan::kMore;
      *used += now;
      if (done_) return Scan::kDone;
    }
    return Scan::kMore;
  }

 private:
  // Each: how many bytes it used; 0 to wait for more.
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
    in_value_ = true;
    writer_ = Writer();
    tuples_.clear();
    return equals + 1;
  }

  void ValueEnded() {
    in_value_ = false;
    wants_comma_ = true;
  }

  size_t ValuePart(absl::string_view text, bool* good, std::string* json) {
    const char c = text[0];
    if (absl::ascii_isspace(static_cast<unsigned char>(c))) return 1;
    if (c == '"' || c == '\'') {
      quote_ = c;
      *good = writer_.Put("\"", json);
      return 1;
    }
    if (IsWordByte(c)) {
      size_t end = 0;
      while (end < text.size() && IsWordByte(text[end])) ++end;
      if (end == text.size()) return 0;
      const std::string word = WordJson(std::string(text.substr(0, end)));
      *good = !word.empty() && writer_.Put(word, json);
      if (writer_.depth() == 0) ValueEnded();
      return end;
    }
    if (c == '[' || c == '{' || c == '(') {
      tuples_.push_back(c);
      *good = writer_.Put(c == '{' ? "{" : "[", json);
      return 1;
    }
    if (c == ']' || c == '}' || c == ')') {
      const char open = c == ']' ? '[' : c == '}' ? '{' : '(';
      *good = !tuples_.empty() && tuples_.back() == open &&
              writer_.Put(c == '}' ? "}" : "]", json);
      if (!*good) return 1;
      tuples_.pop_back();
      if (writer_.done()) ValueEnded();
      return 1;
    }
    *good = (c == ',' || c == ':') && writer_.depth() > 0 &&
            writer_.Put(c == ',' ? ", " : ": ", json);
    return 1;
  }

  size_t StringPart(absl::string_view text, bool* good, std::string* json) {
    const char c = text[0];
    if (c == quote_) {
      quote_ = 0;
      *good = writer_.Put("\"", json);
      if (writer_.done()) ValueEnded();
      return 1;
    }
    if (c == '\\') return Escape(text, good, json);
    if (c == '\n') {
      *good = false;
      return 1;
    }
    *good = writer_.Put(JsonEscaped(text.substr(0, 1)), json);
    return 1;
  }

  size_t Escape(absl::string_view text, bool* good, std::string* json) {
    if (text.size() < 2) return 0;
    const char c = text[1];
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 0;
    if (text.size() < 2 + digits) return 0;
    std::string spelled;
    if (digits > 0) {
      spelled =
          absl::StrCat("\\u", digits == 2 ? "00" : "", text.substr(2, digits));
    } else if (absl::string_view("\"\\nrtbf").find(c) !=
               absl::string_view::npos) {
      spelled = std::string(text.substr(0, 2));
    } else if (c == '\'') {
      spelled = "'";
    } else if (c != '\n') {
      spelled = absl::StrCat("\\\\", JsonEscaped(text.substr(1, 1)));
    }
    *good = writer_.Put(spelled, json);
    return 2 + digits;
  }

  Writer writer_;  // of this value
  std::vector<char> tuples_;
  bool any_ = false, in_value_ = false, wants_comma_ = false, done_ = false;
  char quote_ = 0;
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

std::unique_ptr<ArgumentReader> PythonArguments() {
  return std::make_unique<Python>();
}

std::unique_ptr<ArgumentReader> BraceArguments(absl::string_view quote) {
  return std::make_unique<Braces>(quote);
}

}  // namespace weft::answer
