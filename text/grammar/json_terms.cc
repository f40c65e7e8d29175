#include "text/grammar/json_terms.h"

#include <utility>

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

}  // namespace

Term Space() { return Reference(kSpaceRule); }
Term Comma() { return Sequence({Space(), Literal(","), Space()}); }

Term Quoted(Term inside) {
  return Sequence({Literal("\""), std::move(inside), Literal("\"")});
}

std::vector<Rule> CommonRules(bool open, bool slash_escapes) {
  std::vector<Rule> rules;
  std::vector<CodePoints> escapes = {{'"', '"'}, {'\\', '\\'}, {'b', 'b'},
                                     {'f', 'f'}, {'n', 'n'},   {'r', 'r'},
                                     {'t', 't'}};
  if (slash_escapes) escapes.push_back({'/', '/'});
  rules.push_back(
      {kSpaceRule,
       Optional(Choice(
           {Literal(" "),
            Sequence({Literal("\n"),
                      Repeat(Class({{' ', ' '}, {'\t', '\t'}}), 0, 20)})}))});
  rules.push_back(
      {kCharacterRule,
       Choice({Class({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}, /*negated=*/true),
               Sequence({Literal("\\"),
                         Choice({Class(escapes), UnicodeEscape()})})})});
  rules.push_back({kStringRule, Quoted(Repeat(Reference(kCharacterRule), 0))});
  const auto most = [open](int64_t digits) {
    return open ? kOpenDigits : digits;
  };
  const Term natural = Choice(
      {Literal("0"), Sequence({Class({{'1', '9'}}), Digits(0, most(18) - 1)})});
  const Term rest =
      Sequence({Optional(Sequence({Literal("."), Digits(1, most(18))})),
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

Term NaturalBetween(std::string least, const std::string& most) {
  Term choice = Choice({});
  while (least.size() <= most.size()) {
    const bool last = least.size() == most.size();
    if (last && least > most) break;
    choice.parts.push_back(
        DigitsBetween(least, last ? most : std::string(least.size(), '9')));
    least = "1" + std::string(least.size(), '0');
  }
  return choice;
}

}  // namespace weft::grammar
