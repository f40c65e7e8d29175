#include "text/grammar/grammar.h"

#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/text/grammar/match.h"
#include "tests/text/test_vocabulary.h"
#include "text/grammar/json_schema.h"

namespace weft::grammar {
namespace {

using Json = nlohmann::ordered_json;

// Bytes, and tokens that run over the borders of rules and characters.
Vocabulary JsonVocabulary() {
  Vocabulary vocabulary = BpeVocabulary("gpt-2");
  for (const char* text :
       {"\",",  "\":",   "{\"",   "\"}", "},{", "]]",  "[[",      "\"]}",
        "null", "true,", "\":\"", "\"a", "a\"", "é\"", "ab\",\"", "}]",
        ":[",   "[{\"",  "{}",    "((",  "))",  "())", "x)",      ")x"}) {
    std::string written;
    for (const char c : std::string(text)) {
      written += WriteByte(static_cast<uint8_t>(c));
    }
    AddToken(vocabulary, written, Vocabulary::NORMAL);
  }
  vocabulary.clear_scores();
  return vocabulary;
}

bool IsSet(const std::vector<uint64_t>& mask, int32_t token) {
  return (mask[token / 64] >> (token % 64) & 1) != 0;
}

class GrammarTest : public ::testing::Test {
 protected:
  GrammarTest()
      : tokenizer_(MakeTokenizer(JsonVocabulary())),
        trie_(std::make_shared<const TokenTrie>(*tokenizer_)) {}

  std::shared_ptr<Grammar> Make(const absl::StatusOr<Syntax>& syntax) {
    EXPECT_TRUE(syntax.ok()) << syntax.status();
    auto made = Grammar::Create(*syntax, trie_);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  std::vector<uint64_t> Mask(TokenConstraint& constraint) {
    std::vector<uint64_t> mask(MaskWords(tokenizer_->vocabulary_size()), ~0ull);
    EXPECT_TRUE(constraint.Mask(absl::MakeSpan(mask)).ok());
    return mask;
  }

  // Texts drawn at random from the masks; every mask is compared with trying
  // each token alone.
  void Draw(const absl::StatusOr<Syntax>& syntax, int texts, size_t length) {
    const auto grammar = Make(syntax);
    const Compiled& compiled = grammar->compiled();
    std::mt19937 random(7);
    for (int i = 0; i < texts; ++i) {
      auto constraint = grammar->NewConstraint();
      Automaton automaton(&compiled);
      int32_t set = automaton.SetAt({compiled.start(), 0});
      std::string text;
      while (text.size() < length) {
        const std::vector<uint64_t> mask = Mask(*constraint);
        std::vector<int32_t> allowed;
        for (int32_t t = 0; t < tokenizer_->vocabulary_size(); ++t) {
          bool want = false;
          if (tokenizer_->IsEndOfGeneration(t)) {
            want = automaton.ended(set);
          } else if (!tokenizer_->IsSpecial(t)) {
            int32_t after = set;
            for (const char c : tokenizer_->TokenToBytes(t)) {
              after = automaton.Step(after, static_cast<uint8_t>(c));
            }
            want = after != Automaton::kDead;
          }
          ASSERT_EQ(IsSet(mask, t), want)
              << text << " + " << tokenizer_->TokenToBytes(t);
          if (want) allowed.push_back(t);
        }
        ASSERT_FALSE(allowed.empty()) << text;
        const int32_t token = allowed[random() % allowed.size()];
        if (tokenizer_->IsEndOfGeneration(token)) {
          finished_.push_back(text);
          break;
        }
        if (random() % 8 == 0) constraint = constraint->Clone();
        ASSERT_TRUE(constraint->Accept(token).ok());
        for (const char c : tokenizer_->TokenToBytes(token)) {
          text.push_back(c);
          set = automaton.Step(set, static_cast<uint8_t>(c));
        }
      }
    }
  }

  std::unique_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const TokenTrie> trie_;
  std::vector<std::string> finished_;
};

TEST_F(GrammarTest, MasksAreJustTheTokensThatFit) {
  Draw(ParseGbnf("root ::= \"(\" root \")\" | \"x\" root | \"\""), 40, 60);
  Draw(ParseGbnf("root ::= (\"a\" | \"ab\" | \"b\"? \"c\")* [^a-z]{1,3}"), 40,
       60);
  EXPECT_FALSE(finished_.empty());
  Draw(AnyJsonObject(), 40, 80);
}

TEST_F(GrammarTest, TextsOfASchemaAreOfTheSchema) {
  Draw(FromJsonSchema(Json::parse(R"({"type": "object", "properties": {
      "name": {"type": "string", "maxLength": 5},
      "tags": {"type": "array", "items": {"enum": ["a", "ab"]}, "maxItems": 3},
      "n": {"type": "integer", "minimum": -5, "maximum": 120},
      "more": {"type": ["null", "boolean"]}},
      "required": ["name", "n"], "additionalProperties": false})")),
       60, 300);
  EXPECT_GT(finished_.size(), 50u);
  for (const std::string& text : finished_) {
    const Json value = Json::parse(text, nullptr, false);
    ASSERT_FALSE(value.is_discarded()) << text;
    ASSERT_TRUE(value["name"].is_string()) << text;
    const int n = value["n"];
    ASSERT_TRUE(n >= -5 && n <= 120) << text;
    ASSERT_LE(value.value("tags", Json::array()).size(), 3u) << text;
  }
}

TEST_F(GrammarTest, RefusesTokensThatDoNotFit) {
  const auto constraint = Make(ParseGbnf("root ::= \"ab\"+"))->NewConstraint();
  EXPECT_TRUE(constraint->Accept('a').ok());
  for (const int32_t token : {int32_t{'a'}, -1, 1 << 30, 271, 272}) {
    EXPECT_FALSE(constraint->Accept(token).ok()) << token;
  }
  // The text stands where it stood.
  EXPECT_TRUE(constraint->Accept('b').ok());
  EXPECT_TRUE(IsSet(Mask(*constraint), 272));
  std::vector<uint64_t> small(1);
  EXPECT_FALSE(constraint->Mask(absl::MakeSpan(small)).ok());
  // Words beyond the vocabulary are written, too.
  std::vector<uint64_t> large(10, ~0ull);
  EXPECT_TRUE(constraint->Mask(absl::MakeSpan(large)).ok());
  EXPECT_EQ(large.back(), 0u);
}

TEST_F(GrammarTest, ClonesGoTheirOwnWay) {
  const auto first =
      Make(ParseGbnf("root ::= \"a\" (\"b\" | \"c\")"))->NewConstraint();
  ASSERT_TRUE(first->Accept('a').ok());
  const auto second = first->Clone();
  ASSERT_TRUE(first->Accept('b').ok());
  EXPECT_TRUE(second->Accept('c').ok());
  EXPECT_TRUE(IsSet(Mask(*second), 272));
}

// A text in ever new sets: what is kept for speed is thrown away in time.
TEST_F(GrammarTest, LongDeepTextsStayCorrect) {
  const auto constraint =
      Make(ParseGbnf("root ::= \"(\" root \")\" | \"x\""))->NewConstraint();
  for (int i = 0; i < 30000; ++i) {
    ASSERT_TRUE(constraint->Accept('(').ok());
    if (i % 50 == 0) {
      ASSERT_TRUE(IsSet(Mask(*constraint), 'x'));
    }
  }
  ASSERT_TRUE(constraint->Accept('x').ok());
  for (int i = 0; i < 30000; ++i) ASSERT_TRUE(constraint->Accept(')').ok());
  EXPECT_FALSE(constraint->Accept(')').ok());
  EXPECT_TRUE(IsSet(Mask(*constraint), 272));
}

// Each letter opens a level in two ways that never meet again, or is read in
// many: the ways to one state are one place, however long the text is.
TEST_F(GrammarTest, AmbiguityCostsNoMorePlacesThanStates) {
  for (const char* text :
       {"root ::= \"a\" root \"x\" | \"a\" root \"y\" | \"b\"",
        "root ::= s\ns ::= \"\" | c s | c s c s | \"(\" s \")\" s\n"
        "c ::= [^()]",
        "root ::= s\ns ::= \"a\" | \"a\" s s | \"a\" s s s"}) {
    const auto grammar = Make(ParseGbnf(text));
    Automaton automaton(&grammar->compiled());
    int32_t set = automaton.SetAt({grammar->compiled().start(), 0});
    int64_t last = automaton.bytes(), first_half = 0;
    for (int i = 0; i < 2000; ++i) {
      set = automaton.Step(set, 'a');
      ASSERT_NE(set, Automaton::kDead) << text << i;
      ASSERT_LE(automaton.places(set).size(),
                static_cast<size_t>(grammar->compiled().state_count()));
      if (i == 999) {
        first_half = automaton.bytes() - last;
        last = automaton.bytes();
      }
    }
    EXPECT_LE(automaton.bytes() - last, 2 * first_half + 4096) << text;
    EXPECT_FALSE(automaton.too_ambiguous());
  }
}

// What is merged still closes as it was opened.
TEST_F(GrammarTest, MergedStacksKeepTheirOrder) {
  Draw(ParseGbnf("root ::= \"a\" root \"x\" | \"a\" root \"y\" | \"b\""), 40,
       60);
  Draw(ParseGbnf("root ::= s\ns ::= \"\" | c s | c s c s | \"(\" s \")\" s\n"
                 "c ::= [^()]"),
       20, 60);
  Matcher matches(ParseGbnf(
      "root ::= \"a\" one \"x\" | \"a\" two \"y\"\n"
      "one ::= \"a\" one \"x\" | \"b\"\ntwo ::= \"a\" two \"y\" | \"b\""));
  const std::string deep(200, 'a');
  EXPECT_TRUE(matches(deep + "b" + std::string(200, 'x')));
  EXPECT_TRUE(matches(deep + "b" + std::string(200, 'y')));
  EXPECT_FALSE(matches(deep + "b" + std::string(199, 'x') + "y"));
  EXPECT_FALSE(matches(deep + "b" + std::string(199, 'y')));
}

TEST_F(GrammarTest, AllWaysOfReadingAreFollowed) {
  // As many a's after the b as before, or twice as many.
  Matcher matches(
      ParseGbnf("root ::= one | two\none ::= \"a\" one \"a\" | \"b\"\n"
                "two ::= \"a\" two \"aa\" | \"b\""));
  for (int before = 0; before < 60; ++before) {
    for (int after = 0; after < 130; ++after) {
      EXPECT_EQ(
          matches(std::string(before, 'a') + "b" + std::string(after, 'a')),
          after == before || after == 2 * before)
          << before << " " << after;
    }
  }
}

TEST_F(GrammarTest, MasksInSmallPartsAreTheSame) {
  std::string many;
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&many, i > 0 ? "," : "", "\"property", i,
                    "\": {\"type\": \"string\"}");
  }
  for (const absl::StatusOr<Syntax>& syntax :
       {absl::StatusOr<Syntax>(AnyJsonObject()),
        FromJsonSchema(Json::parse("{\"properties\": {" + many + "}}")),
        ParseGbnf("root ::= \"{\" (\"a\" | \"ab\" root){0,9} \"}\"")}) {
    const auto whole = Make(syntax)->NewConstraint();
    const auto parts = Make(syntax)->NewConstraint();
    std::mt19937 random(3);
    int parts_done = 0;
    for (int i = 0; i < 60; ++i) {
      while (!parts->Prepare(50)) ++parts_done;
      const std::vector<uint64_t> mask = Mask(*whole);
      ASSERT_EQ(Mask(*parts), mask);
      std::vector<int32_t> allowed;
      for (int32_t t = 0; t < tokenizer_->vocabulary_size(); ++t) {
        if (IsSet(mask, t) && !tokenizer_->IsEndOfGeneration(t)) {
          allowed.push_back(t);
        }
      }
      if (allowed.empty()) break;
      const int32_t token = allowed[random() % allowed.size()];
      ASSERT_TRUE(whole->Accept(token).ok());
      ASSERT_TRUE(parts->Accept(token).ok());
    }
    EXPECT_GT(parts_done, 10);
  }
}

TEST_F(GrammarTest, AThousandOptionalPropertiesCostOneWalk) {
  Json schema = {{"type", "object"}};
  for (int i = 0; i < 1000; ++i) {
    schema["properties"][absl::StrCat("property", i)] = {{"type", "integer"}};
  }
  const auto constraint = Make(FromJsonSchema(schema))->NewConstraint();
  for (const char c : std::string("{\"property5\":1,\"property77\":2,\"prop")) {
    // In units of some nanoseconds: some milliseconds.
    int64_t parts = 0;
    while (!constraint->Prepare(1000)) ASSERT_LT(++parts, 500) << c;
    EXPECT_TRUE(IsSet(Mask(*constraint), c)) << c;
    ASSERT_TRUE(constraint->Accept(c).ok());
  }
}

// Each is small, and takes a closure of thousands of places for many nodes of
// the vocabulary: it is made, or refused, wherever it is begun.
TEST_F(GrammarTest, TooMuchWorkIsAnError) {
  int refused = 0;
  const auto pattern = [](const char* text) {
    return FromJsonSchema({{"type", "string"}, {"pattern", text}});
  };
  std::string optional = "root ::=";
  for (int i = 0; i < 300; ++i) {
    optional += " ([a-z ] | [a-z ] [a-z ])?";
  }
  Vocabulary words = JsonVocabulary();
  std::mt19937 random(5);
  std::set<std::string> written;
  while (written.size() < 30000) {
    std::string word;
    for (int n = 3 + random() % 7; n > 0; --n) word += 'a' + random() % 26;
    if (written.insert(word).second) {
      AddToken(words, word, Vocabulary::NORMAL);
    }
  }
  words.clear_scores();
  tokenizer_ = MakeTokenizer(std::move(words));
  trie_ = std::make_shared<const TokenTrie>(*tokenizer_);
  for (const absl::StatusOr<Syntax>& syntax :
       {ParseGbnf("root ::= ([a-z ] ([a-z ] ([a-z ]?){0,100}){0,100}){0,3}"),
        pattern("^([a-z ]{0,90}){0,90}$"),
        pattern("^(([a-z ]*)*[a-z ]*){0,500}$"), ParseGbnf(optional)}) {
    const auto grammar = Make(syntax);
    // The same each time, whatever masks are there already.
    std::vector<int> failed_at;
    for (int round = 0; round < 2; ++round) {
      const auto constraint = grammar->NewConstraint();
      std::vector<uint64_t> mask(MaskWords(tokenizer_->vocabulary_size()));
      absl::Status status;
      int step = 0;
      for (; step < 100 && status.ok(); ++step) {
        status = constraint->Mask(absl::MakeSpan(mask));
        if (!status.ok()) break;
        status = constraint->Accept(IsSet(mask, 'a') ? 'a' : '"');
      }
      failed_at.push_back(step);
      if (step == 100) continue;
      ++refused;
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()),
                  ::testing::HasSubstr("simplify"));
      // It stays an error.
      EXPECT_FALSE(constraint->Mask(absl::MakeSpan(mask)).ok());
    }
    EXPECT_EQ(failed_at[0], failed_at[1]);
  }
  EXPECT_GT(refused, 0);
}

TEST_F(GrammarTest, SmallSourcesOfLargeGrammarsAreRefused) {
  std::string choices = "root ::= (\"\"";
  for (int i = 0; i < 1000; ++i) choices += " | \"\"";
  choices += "){0,100000}";
  std::string wide = "root ::= [";
  for (int i = 0; i < 5000; ++i) {
    char point[16];
    std::snprintf(point, sizeof(point), "\\u%04X", 0x1000 + 2 * i);
    wide += point;
  }
  wide += "]{0,100000}";
  // A long rule that waits for each of many.
  std::string waiting = "root ::=", others;
  for (int i = 0; i < 20000; ++i) waiting += " \"\"?";
  for (int i = 0; i < 3000; ++i) {
    waiting += absl::StrCat(" r", i);
    others += absl::StrCat("r", i, " ::= [a]\n");
  }
  for (const auto& [text, why] :
       {std::pair(choices, "too large"), std::pair(wide, "too large"),
        std::pair(waiting + "\n" + others, "too often")}) {
    const auto syntax = ParseGbnf(text);
    ASSERT_TRUE(syntax.ok()) << syntax.status();
    const absl::Status status = Grammar::Create(*syntax, trie_).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(why));
  }
}

}  // namespace
}  // namespace weft::grammar
