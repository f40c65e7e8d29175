#include "text/pretokenizers.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/text/test_vocabulary.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Pieces = std::vector<std::string>;

Pieces Split(absl::string_view name, const std::string& text) {
  const auto pretokenizer = Pretokenizer::Create(name);
  EXPECT_TRUE(pretokenizer.ok()) << pretokenizer.status();
  const auto split = (*pretokenizer)->Split(text);
  EXPECT_TRUE(split.ok()) << split.status();
  Pieces pieces;
  size_t end = 0;
  for (const Pretokenizer::Piece piece : *split) {
    EXPECT_EQ(piece.begin, end);
    EXPECT_GT(piece.size, 0u);
    end = piece.begin + piece.size;
    pieces.push_back(text.substr(piece.begin, piece.size));
  }
  EXPECT_EQ(end, text.size());
  return pieces;
}

TEST(Pretokenizers, CutAsTheirModelsDo) {
  const struct {
    const char* name;
    const char* text;
    Pieces pieces;
  } cases[] = {
      {"gpt-2", "I've 1234  x", {"I", "'ve", " 1234", " ", " x"}},
      {"gpt-2", "a\n\nb  ", {"a", "\n", "\n", "b", "  "}},
      {"gpt-2", "It'S!?", {"It", "'", "S", "!?"}},
      {"llama-bpe", "IT'S 12345", {"IT", "'S", " ", "123", "45"}},
      {"llama-bpe", "f(x):\n\n y", {"f", "(x", "):\n\n", " y"}},
      {"qwen2", "a 1234->\nb", {"a", " ", "1", "2", "3", "4", "->\n", "b"}},
      {"refact", " 12a", {" ", "1", "2", "a"}},
      {"falcon", "x==1234 y", {"x", "==", "123", "4", " y"}},
      {"default", "x+=1234.5", {"x", "+=", "123", "4", ".", "5"}},
      {"deepseek-coder", "x \u00E9t\n12", {"x", " \u00E9t", "\n", "1", "2"}},
      {"deepseek-llm", "Don't 42\n", {"Don", "'", "t", " ", "42", "\n"}},
      {"deepseek-v3", "a=1234", {"a", "=", "123", "4"}},
      {"gpt-4o", "HelloWorld's 1", {"Hello", "World's", " ", "1"}},
      {"tekken", "HelloWORLDs 12", {"Hello", "WORLDs", " ", "1", "2"}},
      {"bloom", "Hi there, you", {"Hi", " there", ",", " you"}},
      {"qwen35", "a\u0301b!", {"a\u0301b", "!"}},
      {"qwen2", "a\u0301b!", {"a", "\u0301b", "!"}},
      {"f2llmv2", "a 12", {"a", " ", "1", "2"}},
      {"laguna", "ab 12\n\n c", {"ab", " ", "1", "2", "\n\n", " c"}},
      {"minicpm5", "ab 12345's", {"ab", " ", "123", "45", "'s"}},
      {"spark2_5", "a=1234\n\n", {"a", "=", "1", "2", "3", "4", "\n", "\n"}},
      {"hy_v4", "a=1234", {"a", "=", "123", "4"}},
      {"ufakzeka", "Ali'sin 12", {"Ali", "'sin", " ", "1", "2"}},
      {"granite-embed-multi-97m", "Hello's 1", {"Hello's", " ", "1"}},
      {"gemma4", "a b 12\n\n c\r\n", {"a b 12", "\n\n", " c\r", "\n"}},
      {"sarvam-moe", "a b\nc", {"a b", "\n", "c"}},
      {"joyai-llm", "a=1234", {"a", "=", "123", "4"}},
      {"kanana2", "HelloWorld's 1", {"Hello", "World's", " ", "1"}},
      {"mellum2", " 12a", {" ", "1", "2", "a"}},
      {"cohere2_moe", " 12a", {" ", "1", "2", "a"}},
      {"modern-bert", "I've 1234", {"I", "'ve", " 1234"}},
      {"roberta-bpe", "I've 1234", {"I", "'ve", " 1234"}},
      {"superbpe",
       "by the way 1234567!",
       {"by the way ", "1", "234", "567", "!"}},
      {"superbpe", "123456", {"123", "456"}},
      {"superbpe", "12", {"12"}},
      {"jais-2", "a       b", {"a", "    ", "  ", " b"}},
      {"tiny_aya", "It's 12345 Ab", {"It's", " ", "12", "345", " Ab"}},
      {"afmoe", "a=12345", {"a", "=", "12", "345"}},
      {"afmoe", "x\u4e00\u3042y", {"x", "\u4e00\u3042", "y"}},
      {"youtu", "Ab12\uac00\u4e00c", {"Ab", "1", "2", "\uac00", "\u4e00", "c"}},
      {"exaone-moe", "a bc 1/\n\n", {"a bc", " ", "1", "/\n", "\n"}},
      {"chameleon", "IMGIMGAZ  a", {"IMGIMGAZ", "  ", "a"}},
      {"kimi-k2",
       "HelloWorld's\u4e00\u4e8cab 1234",
       {"Hello", "World's", "\u4e00\u4e8c", "ab", " ", "123", "4"}},
      {"kimi-k2", "a\u0301b!\n\n c", {"a\u0301b", "!\n\n", " c"}},
      // Letters, digits, signs and ideographs that Unicode 15 to 16 added.
      {"qwen2", "a\U00010D4Ab\u1C89", {"a\U00010D4Ab\u1C89"}},
      {"qwen2", "\U00010D40\U00010D41", {"\U00010D40", "\U00010D41"}},
      {"gpt-4o", "ab\u1C89\u1C8A", {"ab", "\u1C89\u1C8A"}},
      {"gpt-2", "a \U0002EBF0b", {"a", " \U0002EBF0b"}},
      {"kimi-k2", "a\U0002EBF0b", {"a", "\U0002EBF0", "b"}},
      // Every script's digits are numbers, every white space is \s; U+180E is
      // not.
      {"qwen2", "\u0661\u00B2", {"\u0661", "\u00B2"}},
      {"gpt-2", "\u3000\u00A0\u0085", {"\u3000\u00A0\u0085"}},
      {"gpt-2", "!\u180E!", {"!\u180E!"}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Split(c.name, c.text), c.pieces) << c.name << ": " << c.text;
  }
}

TEST(Pretokenizers, SeveralNamesMayMeanOneRow) {
  for (const char* name : {"llama3", "llama-v3", "llama-bpe"}) {
    EXPECT_EQ(Split(name, "IT'S 12345"),
              (Pieces{"IT", "'S", " ", "123", "45"}));
    EXPECT_TRUE((*Pretokenizer::Create(name))->traits().whole_pieces_first);
  }
  EXPECT_FALSE((*Pretokenizer::Create("qwen2"))->traits().whole_pieces_first);
}

TEST(Pretokenizers, EveryNameCutsRandomTextWithoutLoss) {
  std::mt19937 random(2);
  const char* const kParts[] = {
      "a",          "Z",  "9",      " ",      "  ",     "\n",     "\r\n",
      "\t",         "'s", "'LL",    ".",      "->",     "\u00E9", "\u4E00",
      "\U0001F999", "\0", "\u0301", "\u3000", "\u00B2", "\u0E01"};
  for (const absl::string_view name : PretokenizerNames()) {
    for (int round = 0; round < 20; ++round) {
      std::string text;
      for (int i = random() % 60; i > 0; --i) {
        text += kParts[random() % std::size(kParts)];
      }
      Split(name, text);  // checks that the pieces join to the text
    }
    EXPECT_TRUE(Split(name, "").empty());
  }
}

// One run of one class: no stack by its length, no search from each of its
// places (which a quadratic time of minutes would show).
TEST(Pretokenizers, EveryNameTakesLongRuns) {
  for (const absl::string_view name : PretokenizerNames()) {
    for (const char* unit : {"A", " ", "\n", "1", ".", "\u4E00", "\u0301"}) {
      const std::string run = Repeat(unit, 100000);
      for (const char* end : {"", "5", "x", "\U0001F999"}) {
        const auto pieces = (*Pretokenizer::Create(name))->Split(run + end);
        ASSERT_TRUE(pieces.ok()) << name << ": " << pieces.status();
        EXPECT_EQ(pieces->back().begin + pieces->back().size,
                  run.size() + strlen(end));
      }
    }
  }
}

TEST(Pretokenizers, AnUnknownNameIsNamed) {
  const auto status = Pretokenizer::Create("llama-9").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'llama-9'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("qwen2"));
}

}  // namespace
}  // namespace weft
