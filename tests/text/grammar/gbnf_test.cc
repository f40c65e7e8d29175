#include "text/grammar/gbnf.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/text/grammar/match.h"
#include "tests/text/test_vocabulary.h"

namespace weft::grammar {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* grammar;
  std::vector<std::string> yes, no;
};

TEST(Gbnf, MatchesWhatItSays) {
  const std::vector<Case> cases = {
      {R"(root ::= "a" "b" | "c" # a comment)", {"ab", "c"}, {"", "a", "abc"}},
      {"root ::= \"a\"*", {"", "a", "aaa"}, {"b", "ab"}},
      {"root ::= \"ab\"+ \"c\"?", {"ab", "ababc"}, {"", "c", "aba"}},
      {"root ::= [a-c]{2} [^a-c\\]]{1,2}",
       {"abx", "ccé🦙"},
       {"ab", "abc", "ab]", "abxyz"}},
      {"root ::= [0-9]{2,}", {"12", "12345"}, {"1", ""}},
      {"root ::= [0-9]{0}", {""}, {"1"}},
      {"root ::= . .",
       {"ab", "é🦙", "\n\t", "\xF4\x8F\xBF\xBFx"},
       {"a", "abc", "\xC0\x80x", "\xED\xA0\x80x", "\xF4\x90\x80\x80x"}},
      {"root ::= [à-ÿ一-龥]+", {"éü", "中文"}, {"a", "é\xC3"}},
      {R"(root ::= "\n\t\"\\\x41\u00e9\U0001F999" [\[\]\-\^])",
       {"\n\t\"\\Aé🦙[", "\n\t\"\\Aé🦙^"},
       {"\n"}},
      {"root ::= (\n \"a\" |\n \"b\"\n)\n  | \"c\"\n\n# more\nx ::= \"x\"\r\n",
       {"a", "b", "c"},
       {"x"}},
      {"root ::= item (\",\" item)*\nitem ::= \"x\" | \"[\" root? \"]\"",
       {"x", "x,x", "[]", "[x,[x,[]]]"},
       {"[", "x,", "[x"}},
      // Ambiguous, nullable, nested repetitions.
      {"root ::= (\"a\" | \"a\" \"a\" | \"a\"*)*", {"", "aaaa"}, {"b"}},
      {"root ::= a a a\na ::= \"x\"?", {"", "x", "xxx"}, {"xxxx"}},
      // Recursion at the end and in the middle.
      {"root ::= \"a\" root | \"b\"", {"b", "aaab"}, {"a", "ba"}},
      {"root ::= \"(\" root \")\" | \"\"",
       {"", "()", "((()))"},
       {"(()", "())"}},
      {"root ::= \"a\" root \"a\" | \"a\" root \"b\" | \"c\"",
       {"aca", "aacba"},
       {"acc", "aac"}},
  };
  for (const Case& c : cases) {
    Matcher matches(ParseGbnf(c.grammar));
    for (const std::string& text : c.yes) {
      EXPECT_TRUE(matches(text)) << c.grammar << "\n" << text;
    }
    for (const std::string& text : c.no) {
      EXPECT_FALSE(matches(text)) << c.grammar << "\n" << text;
    }
  }
}

TEST(Gbnf, EveryCharacterOfAClassAndNoOther) {
  Matcher matches(ParseGbnf("root ::= [\\x20-\\u0900\\uFFF0-\\U00010010]"));
  for (uint32_t c = 0; c <= kLastCodePoint; c += c < 0x20000 ? 1 : 0x101) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    if (c < 0x80) {
      text = {static_cast<char>(c)};
    } else if (c < 0x800) {
      text = {static_cast<char>(0xC0 | c >> 6),
              static_cast<char>(0x80 | (c & 0x3F))};
    } else if (c < 0x10000) {
      text = {static_cast<char>(0xE0 | c >> 12),
              static_cast<char>(0x80 | (c >> 6 & 0x3F)),
              static_cast<char>(0x80 | (c & 0x3F))};
    } else {
      text = {static_cast<char>(0xF0 | c >> 18),
              static_cast<char>(0x80 | (c >> 12 & 0x3F)),
              static_cast<char>(0x80 | (c >> 6 & 0x3F)),
              static_cast<char>(0x80 | (c & 0x3F))};
    }
    const bool want =
        (c >= 0x20 && c <= 0x900) || (c >= 0xFFF0 && c <= 0x10010);
    ASSERT_EQ(matches(text), want) << c;
  }
}

TEST(Gbnf, DeepTextsNeedNoStack) {
  Matcher matches(ParseGbnf("root ::= \"(\" root \")\" | \"x\""));
  const std::string deep =
      weft::Repeat("(", 100000) + "x" + weft::Repeat(")", 100000);
  EXPECT_TRUE(matches(deep));
  EXPECT_FALSE(matches(deep + ")"));
}

TEST(Gbnf, RefusesWithTheReason) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "rule 'root': is missing"},
      {"a ::= \"x\"", "rule 'root': is missing"},
      {"root ::= a", "rule 'a': is missing: rule 'root' refers to it"},
      {"root ::= \"a\"\nroot ::= \"b\"", "rule 'root': is there twice"},
      {"root ::= root \"a\" | \"a\"", "left recursion"},
      {"root ::= a\na ::= b?  a \"x\" | \"y\"\nb ::= \"z\"", "rule 'a': calls"},
      {"root ::= a\na ::= \"\" b | \"y\"\nb ::= [a-z]* a", "left recursion"},
      {"root ::= (root)* \"a\"", "left recursion"},
      {"root ::= \"a\" root", "rule 'root': can never end"},
      {"root ::= [^\\x00-\\U0010FFFF]", "can never end"},
      {"root = \"a\"", "line 1: '::=' is wanted"},
      {"root ::= \"a\n", "line 1: a literal or a class has no end"},
      {"root ::= [a-", "line 1: "},
      {"root ::= \"a\"\n\nx ::= (\"b\"", "line 3: ')' is wanted"},
      {"root ::= \"a\"{3,2}", "more at least than at most"},
      {"root ::= \"a\"{1,999999999}", "at most 100000"},
      {"root ::= [z-a]", "runs backwards"},
      {"root ::= \"\\uD800\"", "names no character"},
      {"root ::= \"\\q\"", "this escape"},
      {"root ::= \"\xFF\"", "is not UTF-8"},
      {"root ::= \"a\" ) \"b\"", "where it should end"},
      {"root ::= " + weft::Repeat("(", 10000), "nested too deeply"},
      {"root ::= ((([a-z]{1,1000}){1,1000}){1,1000}){1,1000}", "too large"},
      {std::string(2 << 20, '#'), "too long"},
  };
  for (const auto& [grammar, why] : cases) {
    EXPECT_THAT(Refusal(ParseGbnf(grammar)), HasSubstr(why))
        << grammar.substr(0, 100);
  }
}

}  // namespace
}  // namespace weft::grammar
