#include "text/grammar/gbnf.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "text/jinja/text.h"
#include "text/utf8.h"

namespace weft::grammar {
namespace {

constexpr size_t kMaxSource = 1 << 20;
constexpr int kMaxDepth = 100;
constexpr int64_t kMaxRepeat = 100000;

bool IsNameByte(char c) {
  return absl::ascii_isalnum(c) || c == '-' || c == '_';
}

class Parser {
 public:
  explicit Parser(absl::string_view source) : source_(source) {}

  absl::StatusOr<Syntax> Run() {
    if (source_.size() > kMaxSource) Fail("is too long");
    if (ValidUtf8Prefix(source_) != source_.size()) Fail("is not UTF-8");
    Syntax syntax;
    Skip(true);
    while (status_.ok() && at_ < source_.size()) {
      Rule rule;
      rule.name = Name();
      Skip(false);
      if (source_.substr(at_, 3) != "::=") Fail("'::=' is wanted");
      at_ += 3;
      Skip(true);
      rule.term = ParseChoice(false, 0);
      if (status_.ok() && at_ < source_.size() && !AtNewline()) {
        Fail("a rule goes on where it should end");
      }
      syntax.rules.push_back(std::move(rule));
      Skip(true);
    }
    if (!status_.ok()) return status_;
    return syntax;
  }

 private:
  void Fail(absl::string_view why) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(
        absl::StrCat("grammar: line ", line_, ": ", why));
    at_ = source_.size();
  }

  char Current() const { return at_ < source_.size() ? source_[at_] : '\0'; }
  bool AtNewline() const { return Current() == '\n' || Current() == '\r'; }

  // White space and comments; of newlines only if asked.
  void Skip(bool newlines) {
    while (at_ < source_.size()) {
      if (Current() == '#') {
        while (at_ < source_.size() && !AtNewline()) ++at_;
      } else if (Current() == ' ' || Current() == '\t' ||
                 (newlines && AtNewline())) {
        if (Current() == '\n') ++line_;
        ++at_;
      } else {
        break;
      }
    }
  }

  std::string Name() {
    const size_t begin = at_;
    while (at_ < source_.size() && IsNameByte(Current())) ++at_;
    if (at_ == begin) Fail("the name of a rule is wanted");
    return std::string(source_.substr(begin, at_ - begin));
  }

  // In parentheses newlines are space.
  Term ParseChoice(bool inside, int depth) {
    Term choice = Choice({});
    choice.line = line_;
    if (depth > kMaxDepth) Fail("parentheses are nested too deeply");
    do {
      Skip(true);
      choice.parts.push_back(ParseSequence(inside, depth));
      // A choice may go on in the next line.
      const size_t at = at_;
      const int line = line_;
      Skip(true);
      if (Current() == '|') continue;
      at_ = at;
      line_ = line;
    } while (status_.ok() && Current() == '|' && ++at_);
    if (choice.parts.size() == 1) {
      Term only = std::move(choice.parts[0]);
      return only;
    }
    return choice;
  }

  Term ParseSequence(bool inside, int depth) {
    Term sequence = Sequence({});
    sequence.line = line_;
    while (status_.ok()) {
      Skip(inside);
      const char c = Current();
      if (at_ >= source_.size() || c == '|' || c == ')' || AtNewline()) break;
      Term term;
      if (c == '"') {
        term = ParseLiteral();
      } else if (c == '[') {
        term = ParseClass();
      } else if (c == '.') {
        ++at_;
        term = Class({}, /*negated=*/true);
      } else if (c == '(') {
        ++at_;
        term = ParseChoice(true, depth + 1);
        Skip(true);
        if (Current() != ')') Fail("')' is wanted");
        if (status_.ok()) ++at_;
      } else {
        term = Reference(Name());
      }
      term.line = line_;
      sequence.parts.push_back(ParseRepeats(std::move(term)));
    }
    return sequence;
  }

  Term ParseRepeats(Term term) {
    for (int count = 0; status_.ok(); ++count) {
      const char c = Current();
      int64_t least = 0, most = Term::kUnlimited;
      if (c == '+') {
        least = 1;
      } else if (c == '?') {
        most = 1;
      } else if (c == '{') {
        ++at_;
        least = Number();
        most = least;
        if (Current() == ',') {
          ++at_;
          Skip(false);
          most = Current() == '}' ? Term::kUnlimited : Number();
        }
        if (Current() != '}') Fail("'}' is wanted");
        if (most != Term::kUnlimited && most < least) {
          Fail("a repetition has more at least than at most");
        }
      } else if (c != '*') {
        break;
      }
      if (count >= kMaxDepth) Fail("too many repetitions of one thing");
      if (status_.ok()) ++at_;
      const int line = term.line;
      term = Repeat(std::move(term), least, most);
      term.line = line;
    }
    return term;
  }

  int64_t Number() {
    Skip(false);
    const size_t begin = at_;
    while (absl::ascii_isdigit(Current())) ++at_;
    int64_t number = 0;
    if (!absl::SimpleAtoi(source_.substr(begin, at_ - begin), &number) ||
        number > kMaxRepeat) {
      Fail(absl::StrCat("a number of at most ", kMaxRepeat, " is wanted"));
    }
    Skip(false);
    return number;
  }

  // One character of a literal or a class, escaped or not.
  uint32_t Character() {
    if (at_ >= source_.size() || AtNewline()) {
      Fail("a literal or a class has no end");
      return 0;
    }
    if (Current() != '\\') {
      const Utf8Unit unit = Utf8UnitAt(source_, at_);
      const uint32_t c = jinja::FromUtf8(source_.substr(at_, unit.bytes))[0];
      at_ += unit.bytes;
      return c;
    }
    ++at_;
    const char c = Current();
    ++at_;
    static constexpr absl::string_view kNames = "nrt";
    static constexpr absl::string_view kMeant = "\n\r\t";
    const size_t place = kNames.find(c);
    if (c != '\0' && place != kNames.npos) return kMeant[place];
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
      uint32_t value = 0;
      const absl::string_view hex =
          source_.substr(std::min(at_, source_.size()), digits);
      if (hex.size() != digits ||
          !std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit) ||
          !absl::SimpleHexAtoi(hex, &value) || value > kLastCodePoint ||
          (value >= 0xD800 && value <= 0xDFFF)) {
        Fail("an escape names no character");
      }
      at_ += digits;
      return value;
    }
    if (!absl::ascii_ispunct(c)) Fail("this escape is not known");
    return static_cast<unsigned char>(c);
  }

  Term ParseLiteral() {
    ++at_;
    Term literal = Literal("");
    while (status_.ok() && Current() != '"') {
      jinja::AppendUtf8(Character(), literal.bytes);
    }
    if (status_.ok()) ++at_;
    return literal;
  }

  Term ParseClass() {
    ++at_;
    Term made = Class({});
    if (Current() == '^') {
      made.negated = true;
      ++at_;
    }
    while (status_.ok() && Current() != ']') {
      const uint32_t first = Character();
      uint32_t last = first;
      if (Current() == '-' && source_.substr(at_ + 1, 1) != "]") {
        ++at_;
        last = Character();
      }
      if (last < first) Fail("a range in a class runs backwards");
      made.ranges.push_back({first, last});
    }
    if (made.ranges.empty() && !made.negated) Fail("a class is empty");
    if (status_.ok()) ++at_;
    return made;
  }

  const absl::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Syntax> ParseGbnf(absl::string_view source) {
  return Parser(source).Run();
}

}  // namespace weft::grammar
