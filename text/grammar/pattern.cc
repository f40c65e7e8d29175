#include "text/grammar/pattern.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "text/grammar/json_terms.h"
#include "text/grammar/utf8_ranges.h"
#include "text/jinja/text.h"

namespace weft::grammar {
namespace {

constexpr int kMaxDepth = 50;
constexpr int64_t kMaxRepeat = 10000;

class Parser {
 public:
  explicit Parser(absl::string_view pattern)
      : text_(jinja::FromUtf8(pattern)) {}

  absl::StatusOr<Term> Run() {
    const Term anything = Repeat(Reference(kCharacterRule), 0);
    std::vector<Term> parts;
    const bool begins = Take('^');
    if (!begins) parts.push_back(anything);
    parts.push_back(ParseChoice(0, /*top=*/true));
    if (Current() == '$') {
      ++at_;
    } else {
      parts.push_back(anything);
    }
    if (at_ < text_.size()) Fail("is not expected here");
    if (has_top_choice_ && (begins || ends_)) {
      Fail("^ and $ with | need parentheses around the alternatives");
    }
    if (!status_.ok()) return status_;
    return Sequence(std::move(parts));
  }

 private:
  void Fail(absl::string_view why) {
    if (!status_.ok()) return;
    std::string rest = jinja::ToUtf8(text_.substr(std::min(at_, text_.size())));
    status_ = absl::InvalidArgumentError(
        absl::StrCat("pattern at '", rest.substr(0, 20), "': ", why));
    at_ = text_.size();
  }

  char32_t Current() const { return at_ < text_.size() ? text_[at_] : 0; }
  bool Take(char32_t c) {
    const bool found = at_ < text_.size() && text_[at_] == c;
    if (found) ++at_;
    return found;
  }

  Term ParseChoice(int depth, bool top) {
    if (depth > kMaxDepth) Fail("groups are nested too deeply");
    Term choice = Choice({});
    do {
      choice.parts.push_back(ParseSequence(depth));
      if (top && Current() == '|') has_top_choice_ = true;
    } while (status_.ok() && Take('|'));
    if (top && Current() == '$') ends_ = true;
    return choice;
  }

  Term ParseSequence(int depth) {
    Term sequence = Sequence({});
    while (status_.ok() && at_ < text_.size()) {
      const char32_t c = Current();
      if (c == '|' || c == ')' || c == '$') break;
      sequence.parts.push_back(ParseRepeats(ParseAtom(depth)));
    }
    return sequence;
  }

  Term ParseAtom(int depth) {
    const char32_t c = Current();
    switch (c) {
      case '(': {
        ++at_;
        if (Take('?') && !Take(':'))
          Fail("this kind of group is not supported");
        Term group = ParseChoice(depth + 1, /*top=*/false);
        if (!Take(')')) Fail("')' is wanted");
        return group;
      }
      case '[':
        return ParseClass();
      case '.':
        ++at_;
        return StringCharacter({{'\n', '\n'}, {'\r', '\r'}}, true);
      case '\\':
        return ParseEscape();
      case '^':
      case '*':
      case '+':
      case '?':
      case '{':
        Fail("is not supported here");
        return Sequence({});
      default:
        ++at_;
        return StringCharacter({{c, c}}, false);
    }
  }

  // What \d and its like stand for; false for others.
  bool ClassEscape(char32_t c, std::vector<CodePoints>& ranges) {
    std::vector<CodePoints> found;
    switch (c | 0x20) {
      case 'd':
        found = {{'0', '9'}};
        break;
      case 'w':
        found = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
        break;
      case 's':
        found = {{'\t', '\r'}, {' ', ' '}, {0xA0, 0xA0}, {0x2028, 0x2029}};
        break;
      default:
        return false;
    }
    if (c < 'a') found = Normalized(found, /*negated=*/true);
    ranges.insert(ranges.end(), found.begin(), found.end());
    return true;
  }

  // The character after a backslash.
  char32_t EscapedCharacter() {
    const char32_t c = Current();
    ++at_;
    static constexpr absl::string_view kNames = "nrtfv";
    static constexpr absl::string_view kMeant = "\n\r\t\f\v";
    const size_t place =
        c != 0 && c < 0x80 ? kNames.find(static_cast<char>(c)) : kNames.npos;
    if (place != kNames.npos) return static_cast<unsigned char>(kMeant[place]);
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 0;
    if (digits > 0) {
      const std::string hex =
          jinja::ToUtf8(text_.substr(std::min(at_, text_.size()), digits));
      uint32_t value = 0;
      if (hex.size() != digits ||
          !std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit) ||
          !absl::SimpleHexAtoi(hex, &value) ||
          (value >= 0xD800 && value <= 0xDFFF)) {
        Fail("an escape names no character");
      }
      at_ += digits;
      return value;
    }
    if (c >= 0x80 || !absl::ascii_ispunct(static_cast<unsigned char>(c))) {
      Fail("this escape is not supported");
    }
    return c;
  }

  Term ParseEscape() {
    ++at_;
    std::vector<CodePoints> ranges;
    if (ClassEscape(Current(), ranges)) {
      ++at_;
    } else {
      const char32_t c = EscapedCharacter();
      ranges.push_back({c, c});
    }
    return StringCharacter(ranges, false);
  }

  Term ParseClass() {
    ++at_;
    const bool negated = Take('^');
    std::vector<CodePoints> ranges;
    while (status_.ok() && Current() != ']') {
      if (at_ >= text_.size()) Fail("a class has no end");
      if (Current() == '\\' && at_ + 1 < text_.size() &&
          ClassEscape(text_[at_ + 1], ranges)) {
        at_ += 2;
        continue;
      }
      const auto character = [&] {
        return Take('\\') ? EscapedCharacter() : text_[at_++];
      };
      if (!status_.ok()) break;
      const char32_t first = character();
      char32_t last = first;
      if (Current() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        last = character();
      }
      if (last < first) Fail("a range in a class runs backwards");
      ranges.push_back({first, last});
    }
    if (!Take(']')) Fail("a class has no end");
    Term made = StringCharacter(ranges, negated);
    if (made.parts.empty()) Fail("a class is empty");
    return made;
  }

  Term ParseRepeats(Term term) {
    while (status_.ok()) {
      if (Take('*')) {
        term = Repeat(std::move(term), 0);
      } else if (Take('+')) {
        term = Repeat(std::move(term), 1);
      } else if (Take('?')) {
        term = Optional(std::move(term));
      } else if (Take('{')) {
        const int64_t least = Number();
        int64_t most = least;
        if (Take(',')) most = Current() == '}' ? Term::kUnlimited : Number();
        if (!Take('}')) Fail("'}' is wanted");
        if (most != Term::kUnlimited && most < least) {
          Fail("a repetition has more at least than at most");
        }
        term = Repeat(std::move(term), least, most);
      } else {
        break;
      }
      // Lazy or not, the same texts match.
      Take('?');
      if (Current() == '*' || Current() == '+' || Current() == '{') {
        Fail("a repetition of a repetition");
      }
    }
    return term;
  }

  int64_t Number() {
    int64_t number = 0;
    const size_t begin = at_;
    while (Current() >= '0' && Current() <= '9' && at_ - begin < 6) ++at_;
    if (!absl::SimpleAtoi(jinja::ToUtf8(text_.substr(begin, at_ - begin)),
                          &number) ||
        number > kMaxRepeat) {
      Fail(absl::StrCat("a number of at most ", kMaxRepeat, " is wanted"));
    }
    return number;
  }

  const jinja::Text text_;
  size_t at_ = 0;
  bool has_top_choice_ = false, ends_ = false;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Term> ParsePattern(absl::string_view pattern) {
  return Parser(pattern).Run();
}

}  // namespace weft::grammar
