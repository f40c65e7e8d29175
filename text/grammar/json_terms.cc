#include "text/grammar/json_terms.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "text/grammar/utf8_ranges.h"
#include "text/jinja/text.h"

namespace weft::grammar {
namespace {

Term Digits(int64_t least, int64_t most) {
  return Repeat(Class({{'0', '9'}}), least, most);
}

Term Hex(int64_t count) {
  return Repeat(Class({{'0', '9'}, {'a', 'f'}, {'A', 'F'}}), count, count);
}

// \uHHHH, without halves of pairs.
Term UnicodeEscape() {
  return Sequence(
      {Literal("u"), Choice({Sequence({Class({{'0', '9'},
                                              {'a', 'c'},
                                              {'A', 'C'},
                                              {'e', 'f'},
                                              {'E', 'F'}}),
                                       Hex(3)}),
                             Sequence({Class({{'d', 'd'}, {'D', 'D'}}),
                                       Class({{'0', '7'}}), Hex(2)})})});
}

// Digits from `low` to `high`, which are equally long.
Term DigitsBetween(const std::string& low, const std::string& high) {
  if (low.empty()) return Sequence({});
  const std::string low_rest = low.substr(1), high_rest = high.substr(1);
  const int64_t rest = static_cast<int64_t>(low_rest.size());
  const uint32_t first = static_cast<unsigned char>(low[0]);
  const uint32_t last = static_cast<unsigned char>(high[0]);
  if (first == last) {
    return Sequence(
        {Literal(low.substr(0, 1)), DigitsBetween(low_rest, high_rest)});
  }
  const bool from_zeros = low_rest.find_first_not_of('0') == low_rest.npos;
  const bool to_nines = high_rest.find_first_not_of('9') == high_rest.npos;
  Term choice = Choice({});
  if (!from_zeros) {
    choice.parts.push_back(
        Sequence({Literal(low.substr(0, 1)),
                  DigitsBetween(low_rest, std::string(rest, '9'))}));
  }
  const uint32_t full_first = from_zeros ? first : first + 1;
  const uint32_t full_last = to_nines ? last : last - 1;
  if (full_first <= full_last) {
    choice.parts.push_back(
        Sequence({Class({{full_first, full_last}}), Digits(rest, rest)}));
  }
  if (!to_nines) {
    choice.parts.push_back(
        Sequence({Literal(high.substr(0, 1)),
                  DigitsBetween(std::string(rest, '0'), high_rest)}));
  }
  return choice;
}

// 0 <= least <= most.
void AddNaturals(int64_t least, int64_t most, const std::string& sign,
                 Term& choice) {
  for (std::string low = absl::StrCat(least);;
       low = "1" + std::string(low.size(), '0')) {
    const std::string high = absl::StrCat(most);
    const bool last = low.size() == high.size();
    Term digits =
        DigitsBetween(low, last ? high : std::string(low.size(), '9'));
    choice.parts.push_back(Sequence({Literal(sign), std::move(digits)}));
    if (last) return;
  }
}

struct NameTree {
  std::vector<std::pair<char32_t, NameTree>> children;
  bool is_name = false;
};

void Insert(const jinja::Text& name, NameTree& tree) {
  NameTree* node = &tree;
  for (const char32_t c : name) {
    auto found =
        std::find_if(node->children.begin(), node->children.end(),
                     [&](const auto& child) { return child.first == c; });
    if (found == node->children.end()) {
      node->children.emplace_back(c, NameTree());
      found = node->children.end() - 1;
    }
    node = &found->second;
  }
  node->is_name = true;
}

Term NoneOf(const NameTree& tree) {
  std::vector<CodePoints> taken = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  Term choice = Choice({});
  for (const auto& [c, child] : tree.children) {
    taken.push_back({c, c});
    std::string bytes;
    jinja::AppendUtf8(c, bytes);
    // A character that needs an escape is not among the keys made here.
    if (c > 0x1F && c != '"' && c != '\\') {
      // Moved: a copy at every character would be one of all that follow.
      Term rest = Sequence({Literal(bytes)});
      rest.parts.push_back(NoneOf(child));
      choice.parts.push_back(std::move(rest));
    }
  }
  const Term any =
      Class({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}, /*negated=*/true);
  choice.parts.push_back(
      Sequence({Class(taken, /*negated=*/true), Repeat(any, 0)}));
  if (!tree.is_name) choice.parts.push_back(Sequence({}));
  return choice;
}

}  // namespace

Term Space() { return Reference(kSpaceRule); }
Term Comma() { return Sequence({Space(), Literal(","), Space()}); }

Term Quoted(Term inside) {
  return Sequence({Literal("\""), std::move(inside), Literal("\"")});
}

std::vector<Rule> CommonRules() {
  std::vector<Rule> rules;
  rules.push_back(
      {kSpaceRule,
       Optional(Choice(
           {Literal(" "),
            Sequence({Literal("\n"),
                      Repeat(Class({{' ', ' '}, {'\t', '\t'}}), 0, 20)})}))});
  rules.push_back(
      {kCharacterRule,
       Choice({Class({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}, /*negated=*/true),
               Sequence({Literal("\\"), Choice({Class({{'"', '"'},
                                                       {'\\', '\\'},
                                                       {'/', '/'},
                                                       {'b', 'b'},
                                                       {'f', 'f'},
                                                       {'n', 'n'},
                                                       {'r', 'r'},
                                                       {'t', 't'}}),
                                                UnicodeEscape()})})})});
  rules.push_back({kStringRule, Quoted(Repeat(Reference(kCharacterRule), 0))});
  const Term natural =
      Choice({Literal("0"), Sequence({Class({{'1', '9'}}), Digits(0, 17)})});
  const Term rest =
      Sequence({Optional(Sequence({Literal("."), Digits(1, 18)})),
                Optional(Sequence({Class({{'e', 'e'}, {'E', 'E'}}),
                                   Optional(Class({{'+', '+'}, {'-', '-'}})),
                                   Digits(1, 2)}))});
  rules.push_back({kIntegerRule, Sequence({Optional(Literal("-")), natural})});
  rules.push_back({kNumberRule, Sequence({Reference(kIntegerRule), rest})});
  rules.push_back({kNaturalNumberRule, Sequence({natural, rest})});
  const Term member = Sequence({Reference(kStringRule), Space(), Literal(":"),
                                Space(), Reference(kValueRule)});
  rules.push_back(
      {kObjectRule,
       Sequence(
           {Literal("{"), Space(),
            Optional(Sequence(
                {member, Repeat(Sequence({Comma(), member}), 0), Space()})),
            Literal("}")})});
  rules.push_back(
      {kArrayRule,
       Sequence({Literal("["), Space(),
                 Optional(Sequence(
                     {Reference(kValueRule),
                      Repeat(Sequence({Comma(), Reference(kValueRule)}), 0),
                      Space()})),
                 Literal("]")})});
  rules.push_back(
      {kValueRule,
       Choice({Reference(kObjectRule), Reference(kArrayRule),
               Reference(kStringRule), Reference(kNumberRule), Literal("true"),
               Literal("false"), Literal("null")})});
  return rules;
}

Term StringCharacter(const std::vector<CodePoints>& ranges, bool negated) {
  Term choice = Choice({});
  std::vector<CodePoints> plain;
  const auto escaped = [&](uint32_t c) {
    static constexpr absl::string_view kCodes = "\"\\\b\f\n\r\t";
    static constexpr absl::string_view kNames = "\"\\bfnrt";
    const size_t place = kCodes.find(static_cast<char>(c));
    if (place != kCodes.npos) {
      choice.parts.push_back(
          Literal(absl::StrCat("\\", kNames.substr(place, 1))));
    } else {
      choice.parts.push_back(
          Literal(absl::StrCat("\\u", absl::Hex(c, absl::kZeroPad4))));
    }
  };
  for (CodePoints range : Normalized(ranges, negated)) {
    for (uint32_t c = range.first; c <= std::min(range.last, 0x5Cu); ++c) {
      if (c < 0x20 || c == '"' || c == '\\') {
        escaped(c);
      } else if (!plain.empty() && plain.back().last + 1 == c) {
        plain.back().last = c;
      } else {
        plain.push_back({c, c});
      }
    }
    if (range.last > 0x5C) {
      plain.push_back({std::max(range.first, 0x5Du), range.last});
    }
  }
  if (!plain.empty()) choice.parts.push_back(Class(std::move(plain)));
  return choice;
}

Term StringBut(std::vector<std::string> names) {
  NameTree tree;
  for (const std::string& name : names) Insert(jinja::FromUtf8(name), tree);
  return Quoted(NoneOf(tree));
}

Term IntegerBetween(int64_t least, int64_t most) {
  Term choice = Choice({});
  if (least < 0) {
    const int64_t nearest = std::max<int64_t>(1, -std::min<int64_t>(most, -1));
    AddNaturals(nearest, -least, "-", choice);
  }
  if (most >= 0) AddNaturals(std::max<int64_t>(least, 0), most, "", choice);
  return choice;
}

}  // namespace weft::grammar
