#include "text/grammar/pattern.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "text/grammar/utf8_ranges.h"
#include "text/jinja/text.h"
#include "utf8proc.h"

namespace weft::grammar {
namespace {

constexpr int kMaxDepth = 50;
constexpr int64_t kMaxRepeat = 10000;
constexpr size_t kMaxLength = 100000;   // of a pattern
constexpr size_t kMaxRanges = 1000000;  // of all its classes

struct Node {
  enum Kind {
    kCharacters,  // one of `ranges`
    kSequence,
    kChoice,
    kRepeat,  // parts[0], `least` to `most` times
    kPlace,   // where `condition` holds
    kAhead,   // what follows begins with parts[0], or does not: `negated`
  };
  Kind kind = kSequence;
  std::vector<CodePoints> ranges;
  std::vector<Node> parts;
  int64_t least = 0, most = Term::kUnlimited;
  Nfa::Condition condition = Nfa::kAlways;
  bool negated = false;
};

// Names of general categories, short and long; one letter is all that begin
// with it.
struct Category {
  absl::string_view name, long_name;
};
constexpr Category kCategories[] = {{"L", "Letter"},
                                    {"Lu", "Uppercase_Letter"},
                                    {"Ll", "Lowercase_Letter"},
                                    {"Lt", "Titlecase_Letter"},
                                    {"Lm", "Modifier_Letter"},
                                    {"Lo", "Other_Letter"},
                                    {"M", "Mark"},
                                    {"Mn", "Nonspacing_Mark"},
                                    {"Mc", "Spacing_Mark"},
                                    {"Me", "Enclosing_Mark"},
                                    {"N", "Number"},
                                    {"Nd", "Decimal_Number"},
                                    {"Nl", "Letter_Number"},
                                    {"No", "Other_Number"},
                                    {"P", "Punctuation"},
                                    {"Pc", "Connector_Punctuation"},
                                    {"Pd", "Dash_Punctuation"},
                                    {"Ps", "Open_Punctuation"},
                                    {"Pe", "Close_Punctuation"},
                                    {"Pi", "Initial_Punctuation"},
                                    {"Pf", "Final_Punctuation"},
                                    {"Po", "Other_Punctuation"},
                                    {"S", "Symbol"},
                                    {"Sm", "Math_Symbol"},
                                    {"Sc", "Currency_Symbol"},
                                    {"Sk", "Modifier_Symbol"},
                                    {"So", "Other_Symbol"},
                                    {"Z", "Separator"},
                                    {"Zs", "Space_Separator"},
                                    {"Zl", "Line_Separator"},
                                    {"Zp", "Paragraph_Separator"},
                                    {"C", "Other"},
                                    {"Cc", "Control"},
                                    {"Cf", "Format"},
                                    {"Co", "Private_Use"},
                                    {"Cn", "Unassigned"}};

using CategoryTable = std::map<std::string, std::vector<CodePoints>>;

// By short name, one letter or two.
CategoryTable MakeCategories() {
  CategoryTable table;
  for (uint32_t c = 0; c <= kLastCodePoint; ++c) {
    const std::string category =
        utf8proc_category_string(static_cast<utf8proc_int32_t>(c));
    for (const std::string& name : {category.substr(0, 1), category}) {
      std::vector<CodePoints>& ranges = table[name];
      if (!ranges.empty() && ranges.back().last + 1 == c) {
        ranges.back().last = c;
      } else {
        ranges.push_back({c, c});
      }
    }
  }
  return table;
}

// Empty where there is no such category.
std::vector<CodePoints> OfCategory(absl::string_view name) {
  static const auto* const kTable = new CategoryTable(MakeCategories());
  for (const Category& c : kCategories) {
    if (c.name == name || c.long_name == name ||
        (c.name == "Nd" && name == "digit")) {
      return kTable->at(std::string(c.name));
    }
  }
  return {};
}

class Parser {
 public:
  explicit Parser(absl::string_view pattern)
      : text_(jinja::FromUtf8(pattern)) {}

  absl::StatusOr<Node> Run() {
    if (text_.size() > kMaxLength) Fail("is too long");
    Node all = ParseChoice(0);
    if (at_ < text_.size()) Fail("is not expected here");
    if (!status_.ok()) return status_;
    return all;
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
  bool Take(absl::string_view text) {
    if (jinja::ToUtf8(text_.substr(at_, text.size())) != text) return false;
    at_ += text.size();
    return true;
  }

  static Node Of(Node::Kind kind) {
    Node node;
    node.kind = kind;
    return node;
  }
  Node Characters(std::vector<CodePoints> ranges, bool negated = false) {
    Node node = Of(Node::kCharacters);
    CountRanges(ranges.size());
    node.ranges = Normalized(std::move(ranges), negated);
    return node;
  }
  static Node Place(Nfa::Condition condition) {
    Node node = Of(Node::kPlace);
    node.condition = condition;
    return node;
  }

  void CountRanges(size_t count) {
    ranges_ += count;
    if (ranges_ > kMaxRanges) Fail("is too large");
  }

  Node ParseChoice(int depth) {
    if (depth > kMaxDepth) Fail("groups are nested too deeply");
    Node choice = Of(Node::kChoice);
    do {
      choice.parts.push_back(ParseSequence(depth));
    } while (status_.ok() && Take('|'));
    return choice;
  }

  Node ParseSequence(int depth) {
    Node sequence = Of(Node::kSequence);
    while (status_.ok() && at_ < text_.size()) {
      const char32_t c = Current();
      if (c == '|' || c == ')') break;
      sequence.parts.push_back(ParseRepeats(ParseAtom(depth)));
    }
    return sequence;
  }

  Node ParseAtom(int depth) {
    const char32_t c = Current();
    switch (c) {
      case '(':
        ++at_;
        return ParseGroup(depth);
      case '[':
        return ParseClass();
      case '.':
        ++at_;
        return Characters({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}, true);
      case '^':
        ++at_;
        return Place(Nfa::kAtBegin);
      case '$':
        ++at_;
        return Place(Nfa::kAtEnd);
      case '\\':
        return ParseEscape();
      case '*':
      case '+':
      case '?':
        Fail("there is nothing to repeat");
        return Of(Node::kSequence);
      default:
        ++at_;
        return Characters({{c, c}});
    }
  }

  Node ParseGroup(int depth) {
    Node ahead = Of(Node::kAhead);
    bool looks = false;
    if (Take("?=")) {
      looks = true;
    } else if (Take("?!")) {
      looks = ahead.negated = true;
    } else if (Take("?<=") || Take("?<!")) {
      Fail("look-behind is not supported");
    } else if (Take("?<")) {
      while (at_ < text_.size() && Current() != '>') ++at_;
      if (!Take('>')) Fail("the name of a group has no end");
    } else if (!Take("?:") && Current() == '?') {
      Fail("this kind of group is not supported");
    }
    Node group = ParseChoice(depth + 1);
    if (!Take(')')) Fail("')' is wanted");
    if (!looks) return group;
    ahead.parts.push_back(std::move(group));
    return ahead;
  }

  // What \d and its like stand for, read from after the backslash; false for
  // others.
  bool ClassEscape(std::vector<CodePoints>& ranges) {
    const char32_t c = Current();
    std::vector<CodePoints> found;
    bool negated = c < 'a';
    switch (c | 0x20) {
      case 'd':
        found = {{'0', '9'}};
        break;
      case 'w':
        found = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
        break;
      case 's':
        found = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},
                 {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
                 {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000},
                 {0xFEFF, 0xFEFF}};
        break;
      case 'p': {
        size_t end = at_ + 1;
        if (end >= text_.size() || text_[end] != '{') return false;
        end = text_.find(U'}', end);
        if (end == text_.npos) return false;
        std::string name = jinja::ToUtf8(text_.substr(at_ + 2, end - at_ - 2));
        for (const absl::string_view kind : {"General_Category=", "gc="}) {
          if (name.substr(0, kind.size()) == kind) name.erase(0, kind.size());
        }
        found = OfCategory(name);
        if (name == "Any") found = {{0, kLastCodePoint}};
        if (name == "ASCII") found = {{0, 0x7F}};
        if (found.empty()) {
          Fail("this property of characters is not known");
          return true;
        }
        at_ = end;
        break;
      }
      default:
        return false;
    }
    ++at_;
    found = Normalized(std::move(found), negated);
    CountRanges(found.size());
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
    if (c == '0' && !(Current() >= '0' && Current() <= '9')) return 0;
    if (c == 'c' && Current() < 0x80 &&
        absl::ascii_isalpha(static_cast<unsigned char>(Current()))) {
      return text_[at_++] % 32;
    }
    if (c == 'u' && Current() == '{') {
      const size_t end = text_.find(U'}', at_);
      const std::string hex =
          end == text_.npos
              ? ""
              : jinja::ToUtf8(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end == text_.npos ? at_ : end + 1;
      return Hex(hex);
    }
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 0;
    if (digits > 0) {
      const std::string hex =
          jinja::ToUtf8(text_.substr(std::min(at_, text_.size()), digits));
      at_ += digits;
      if (hex.size() != digits) return Hex("");
      const bool high = (hex[0] | 0x20) == 'd' && hex.size() == 4 &&
                        ((hex[1] | 0x20) == 'a' || (hex[1] | 0x20) == 'b' ||
                         hex[1] == '8' || hex[1] == '9');
      if (high && Take("\\u")) {
        // The two halves of a pair.
        const std::string low =
            jinja::ToUtf8(text_.substr(std::min(at_, text_.size()), 4));
        uint32_t first = 0, second = 0;
        if (low.size() == 4 && absl::SimpleHexAtoi(hex, &first) &&
            absl::SimpleHexAtoi(low, &second) && second >= 0xDC00 &&
            second <= 0xDFFF) {
          at_ += 4;
          return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        }
      }
      return Hex(hex);
    }
    if (c >= '1' && c <= '9') {
      Fail("back references are not supported");
    } else if (c >= 0x80 ||
               !absl::ascii_ispunct(static_cast<unsigned char>(c))) {
      Fail("this escape is not supported");
    }
    return c;
  }

  char32_t Hex(const std::string& hex) {
    uint32_t value = 0;
    if (hex.empty() || hex.size() > 8 ||
        !std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit) ||
        !absl::SimpleHexAtoi(hex, &value) || value > kLastCodePoint ||
        (value >= 0xD800 && value <= 0xDFFF)) {
      Fail("an escape names no character");
      return 0;
    }
    return value;
  }

  Node ParseEscape() {
    ++at_;
    if (Take('b')) return Place(Nfa::kAtWordBorder);
    if (Take('B')) return Place(Nfa::kNotAtWordBorder);
    if (Current() == 'k') Fail("back references are not supported");
    std::vector<CodePoints> ranges;
    if (!ClassEscape(ranges)) {
      const char32_t c = EscapedCharacter();
      ranges.push_back({c, c});
    }
    return Characters(std::move(ranges));
  }

  Node ParseClass() {
    ++at_;
    const bool negated = Take('^');
    std::vector<CodePoints> ranges;
    // False after a set, which begins no range.
    const auto character = [&](char32_t* c) {
      if (!Take('\\')) {
        *c = text_[at_++];
        return true;
      }
      if (ClassEscape(ranges)) return false;
      *c = Take('b') ? 8 : EscapedCharacter();
      return true;
    };
    while (status_.ok() && Current() != ']') {
      if (at_ >= text_.size()) {
        Fail("a class has no end");
        break;
      }
      char32_t first = 0, last = 0;
      if (!character(&first)) continue;
      last = first;
      if (Current() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        if (!character(&last)) {
          ranges.push_back({first, first});
          ranges.push_back({'-', '-'});
          continue;
        }
      }
      if (last < first) Fail("a range in a class runs backwards");
      ranges.push_back({first, last});
    }
    if (!Take(']')) Fail("a class has no end");
    Node made = Characters(std::move(ranges), negated);
    if (made.ranges.empty()) Fail("a class is empty");
    return made;
  }

  Node ParseRepeats(Node node) {
    const auto repeat = [&](int64_t least, int64_t most) {
      if (node.kind == Node::kPlace || node.kind == Node::kAhead) {
        Fail("there is nothing to repeat");
      }
      Node made = Of(Node::kRepeat);
      made.parts.push_back(std::move(node));
      made.least = least;
      made.most = most;
      node = std::move(made);
    };
    if (!status_.ok()) return node;
    if (Take('*')) {
      repeat(0, Term::kUnlimited);
    } else if (Take('+')) {
      repeat(1, Term::kUnlimited);
    } else if (Take('?')) {
      repeat(0, 1);
    } else if (Current() == '{' && at_ + 1 < text_.size() &&
               text_[at_ + 1] >= '0' && text_[at_ + 1] <= '9') {
      ++at_;
      const int64_t least = Number();
      int64_t most = least;
      if (Take(',')) most = Current() == '}' ? Term::kUnlimited : Number();
      if (!Take('}')) Fail("'}' is wanted");
      if (most != Term::kUnlimited && most < least) {
        Fail("a repetition has more at least than at most");
      }
      repeat(least, most);
    } else {
      return node;
    }
    // Lazy or not, the same texts match.
    Take('?');
    if (Current() == '*' || Current() == '+') {
      Fail("a repetition of a repetition");
    }
    return node;
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
  size_t at_ = 0, ranges_ = 0;
  absl::Status status_;
};

// From the end of a pattern to its beginning: each part is built with what
// follows it.
class Builder {
 public:
  explicit Builder(Budget* budget) : budget_(budget) {}

  // Matches anywhere, or, if `whole`, the whole text.
  absl::StatusOr<int32_t> Run(Node pattern, bool whole) {
    // What ^ and $ around the whole say needs no conditions.
    bool begins = whole, ends = whole;
    if (!whole && pattern.parts.size() == 1) {
      std::vector<Node>& parts = pattern.parts[0].parts;
      const auto is_place = [](const Node& node, Nfa::Condition condition) {
        return node.kind == Node::kPlace && node.condition == condition;
      };
      if (!parts.empty() && is_place(parts.front(), Nfa::kAtBegin)) {
        begins = true;
        parts.erase(parts.begin());
      }
      if (!parts.empty() && is_place(parts.back(), Nfa::kAtEnd)) {
        ends = true;
        parts.pop_back();
      }
    }
    int32_t start = Build(pattern, End(!ends));
    if (!begins && !nfa_.full()) {
      const int32_t loop = nfa_.NewState();
      nfa_.at(loop).edges.push_back({Any(), loop});
      nfa_.at(loop).empty.emplace_back(start, Nfa::kAlways);
      start = loop;
    }
    if (!status_.ok()) return status_;
    if (nfa_.full()) {
      return absl::ResourceExhaustedError(
          "pattern: it is too large: use fewer or smaller repetitions");
    }
    return start;
  }

  const Nfa& nfa() const { return nfa_; }

 private:
  static std::vector<CodePoints> Any() { return Normalized({}, true); }

  void Fail(absl::string_view why) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(absl::StrCat("pattern: ", why));
    }
  }

  int32_t End(bool open) {
    const int32_t end = nfa_.NewState();
    nfa_.at(end).accepts = true;
    if (open) nfa_.at(end).edges.push_back({Any(), end});
    return end;
  }

  int32_t Build(const Node& node, int32_t next) {
    if (!status_.ok() || nfa_.full()) return next;
    switch (node.kind) {
      case Node::kCharacters:
        return nfa_.Characters(node.ranges, next);
      case Node::kSequence:
        for (size_t i = node.parts.size(); i-- > 0;) {
          next = Build(node.parts[i], next);
        }
        return next;
      case Node::kChoice: {
        if (node.parts.size() == 1) return Build(node.parts[0], next);
        std::vector<int32_t> begins;
        for (const Node& part : node.parts) {
          begins.push_back(Build(part, next));
        }
        return nfa_.Either(begins);
      }
      case Node::kRepeat:
        return Repeat(node, next);
      case Node::kPlace:
        return nfa_.If(node.condition, next);
      case Node::kAhead:
        return Ahead(node, next);
    }
    return next;
  }

  int32_t Repeat(const Node& node, int32_t next) {
    ++repeats_;
    const Node& part = node.parts[0];
    if (node.most == Term::kUnlimited) {
      const int32_t loop = nfa_.Either({next});
      const int32_t again = Build(part, loop);
      nfa_.at(loop).empty.emplace_back(again, Nfa::kAlways);
      next = loop;
    } else {
      const int32_t end = next;
      for (int64_t i = node.least; i < node.most && !nfa_.full(); ++i) {
        next = nfa_.Either({Build(part, next), end});
      }
    }
    for (int64_t i = 0; i < node.least && !nfa_.full(); ++i) {
      next = Build(part, next);
    }
    --repeats_;
    return next;
  }

  // Both what the part asks of the rest of the text and what follows do.
  int32_t Ahead(const Node& node, int32_t next) {
    if (repeats_ > 0) {
      Fail("look-ahead within a repetition is not supported");
      return next;
    }
    const int32_t asked = Build(node.parts[0], End(/*open=*/true));
    if (nfa_.looks_back()) {
      Fail("look-ahead beside ^ or \\b within the pattern is not supported");
    }
    if (!status_.ok() || nfa_.full()) return next;
    const auto rest = StringLanguage::Of(nfa_, next, budget_);
    const auto wanted = StringLanguage::Of(nfa_, asked, budget_);
    if (!rest.ok() || !wanted.ok()) {
      Fail(OverBudget().message());
      return next;
    }
    const auto both = node.negated ? rest->ButNot(*wanted, budget_)
                                   : rest->And(*wanted, budget_);
    if (!both.ok()) {
      Fail(both.status().message());
      return next;
    }
    return nfa_.Copy(*both);
  }

  Budget* const budget_;
  Nfa nfa_;
  int repeats_ = 0;
  absl::Status status_;
};

absl::Status InPattern(const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("pattern: it ", status.message()));
}

// The automaton as it is, with its choices; it has no conditions.
Term WithChoices(const Nfa& nfa, int32_t start) {
  std::vector<CharacterState> states(nfa.size() + 1);
  states[0].empty.push_back(start + 1);
  for (size_t i = 0; i < nfa.size(); ++i) {
    const Nfa::State& from = nfa.at(static_cast<int32_t>(i));
    CharacterState& to = states[i + 1];
    to.accepts = from.accepts;
    to.edges = from.edges;
    for (CharacterState::Edge& edge : to.edges) ++edge.to;
    for (const auto& step : from.empty) to.empty.push_back(step.first + 1);
  }
  return States(std::move(states));
}

}  // namespace

absl::StatusOr<StringLanguage> ParsePattern(absl::string_view pattern,
                                            Budget* budget) {
  absl::StatusOr<Node> node = Parser(pattern).Run();
  if (!node.ok()) return node.status();
  Builder builder(budget);
  const absl::StatusOr<int32_t> start = builder.Run(*std::move(node), false);
  if (!start.ok()) return start.status();
  auto made = StringLanguage::Of(builder.nfa(), *start, budget);
  if (!made.ok()) return InPattern(made.status());
  return made;
}

absl::StatusOr<Term> PatternInJson(absl::string_view pattern, Budget* budget) {
  absl::StatusOr<Node> node = Parser(pattern).Run();
  if (!node.ok()) return node.status();
  Builder builder(budget);
  const absl::StatusOr<int32_t> start = builder.Run(*std::move(node), false);
  if (!start.ok()) return start.status();
  // A part of the budget: what is over it goes on as it is.
  Budget own;
  own.work = budget->work / 4;
  const int64_t before = own.work;
  auto made = StringLanguage::Of(builder.nfa(), *start, &own);
  budget->Spend(before - own.work);
  if (made.ok()) {
    if (made->empty()) return Choice({});
    return made->JsonTexts();
  }
  if (builder.nfa().has_conditions()) return InPattern(made.status());
  return States(JsonEscaped(*WithChoices(builder.nfa(), *start).states));
}

absl::StatusOr<Syntax> TextsOfPattern(absl::string_view pattern) {
  absl::StatusOr<Node> node = Parser(pattern).Run();
  if (!node.ok()) return node.status();
  Budget budget;
  Builder builder(&budget);
  const absl::StatusOr<int32_t> start = builder.Run(*std::move(node), true);
  if (!start.ok()) return start.status();
  auto made = StringLanguage::Of(builder.nfa(), *start, &budget);
  if (!made.ok() && builder.nfa().has_conditions()) {
    return InPattern(made.status());
  }
  if (made.ok() && made->empty()) {
    return absl::InvalidArgumentError("pattern: no text matches");
  }
  Syntax syntax;
  syntax.rules.push_back(
      {"root", made.ok() ? made->Texts() : WithChoices(builder.nfa(), *start)});
  return syntax;
}

}  // namespace weft::grammar
