// SentencePiece's Unigram model, through Tokenizer; and its rules of
// normalisation. The ids of whole vocabularies are compared in
// tests/golden/embeddings_test.cc.
#include "text/unigram.h"

#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/text/test_vocabulary.h"
#include "text/charsmap.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const EncodeOptions kPlain = {/*add_special=*/false, /*parse_special=*/false};

// <s> 0, <pad> 1, </s> 2, <unk> 3; "▁" 4, letters a to e from 5, then words.
Vocabulary Small(std::vector<std::pair<std::string, float>> words) {
  Vocabulary vocabulary;
  vocabulary.set_model("t5");
  vocabulary.set_bos(0);
  vocabulary.set_padding(1);
  vocabulary.set_eos(2);
  vocabulary.set_unknown(3);
  vocabulary.set_separator(2);
  vocabulary.set_end_of_turn(-1);
  vocabulary.set_add_space_prefix(false);
  AddToken(vocabulary, "<s>", Vocabulary::CONTROL);
  AddToken(vocabulary, "<pad>", Vocabulary::CONTROL);
  AddToken(vocabulary, "</s>", Vocabulary::CONTROL);
  AddToken(vocabulary, "<unk>", Vocabulary::UNKNOWN);
  for (const char* piece : {"▁", "a", "b", "c", "d", "e"}) {
    AddToken(vocabulary, piece, Vocabulary::NORMAL, -5);
  }
  for (const auto& [text, score] : words) {
    AddToken(vocabulary, text, Vocabulary::NORMAL, score);
  }
  return vocabulary;
}

std::vector<int32_t> Ids(const Vocabulary& vocabulary, absl::string_view text) {
  const auto tokenizer = MakeTokenizer(vocabulary);
  return Encode(*tokenizer, text, kPlain);
}

TEST(Unigram, TakesTheCutWithTheLargestSum) {
  // ab + c = -7, a + bc = -8.
  const Vocabulary vocabulary = Small({{"ab", -2}, {"bc", -3}, {"abcd", -99}});
  EXPECT_THAT(Ids(vocabulary, "abc"), ElementsAre(10, 7));
  EXPECT_THAT(Ids(vocabulary, "abcd"), ElementsAre(10, 7, 8));
  EXPECT_THAT(Ids(vocabulary, "bc"), ElementsAre(11));
  EXPECT_THAT(Ids(vocabulary, ""), IsEmpty());
}

TEST(Unigram, OfEqualSumsTheFirstStays) {
  // a + bc and ab + c: the last piece that was met first begins further left.
  EXPECT_THAT(Ids(Small({{"ab", -2}, {"bc", -2}}), "abc"), ElementsAre(5, 11));
  // The whole is met before its parts are through, and they must be better.
  EXPECT_THAT(Ids(Small({{"ab", -10}}), "ab"), ElementsAre(10));
}

TEST(Unigram, UnknownCharactersThatStandTogetherAreOneToken) {
  const Vocabulary vocabulary = Small({{"é", -7}});
  EXPECT_THAT(Ids(vocabulary, "xyza"), ElementsAre(3, 5));
  EXPECT_THAT(Ids(vocabulary, "xayz"), ElementsAre(3, 5, 3));
  EXPECT_THAT(Ids(vocabulary, "xé"), ElementsAre(3, 10));
  // Bytes that are no UTF-8, too.
  EXPECT_THAT(Ids(vocabulary, "a\xff\xc3\x28"), ElementsAre(5, 3));
  Vocabulary without = vocabulary;
  without.set_unknown(-1);
  without.set_types(3, Vocabulary::CONTROL);
  const auto tokenizer = MakeTokenizer(without);
  EXPECT_THAT(std::string(tokenizer->Encode("x", kPlain).status().message()),
              HasSubstr("no unknown token"));
}

TEST(Unigram, UnknownCharactersAreBytesWhereThereArePiecesForThem) {
  Vocabulary vocabulary = Small({});
  AddToken(vocabulary, "<0xC3>", Vocabulary::BYTE);  // 10
  AddToken(vocabulary, "<0xA9>", Vocabulary::BYTE);  // 11
  EXPECT_THAT(Ids(vocabulary, "é"), ElementsAre(10, 11));
  EXPECT_THAT(Ids(vocabulary, "éaé"), ElementsAre(10, 11, 5, 10, 11));
  EXPECT_THAT(Ids(vocabulary, "\u00EA"), ElementsAre(3));
  const auto tokenizer = MakeTokenizer(vocabulary);
  EXPECT_EQ(*tokenizer->Decode({10, 11, 5}, {}), "éa");
}

TEST(Unigram, SpacesAreWhatTheVocabularySays) {
  Vocabulary vocabulary = Small({{"▁a", -1}, {"▁▁", -0.5}});
  EXPECT_THAT(Ids(vocabulary, " a  a "), ElementsAre(10, 11, 5, 4));
  vocabulary.set_add_space_prefix(true);
  EXPECT_THAT(Ids(vocabulary, "a"), ElementsAre(10));
  EXPECT_THAT(Ids(vocabulary, " "), ElementsAre(11));
  vocabulary.set_remove_extra_whitespaces(true);
  EXPECT_THAT(Ids(vocabulary, "  a   a  "), ElementsAre(10, 10));
  EXPECT_THAT(Ids(vocabulary, "   "), IsEmpty());
  EXPECT_THAT(Ids(vocabulary, "a\u2581"), ElementsAre(10));
}

TEST(Unigram, WhatUsersDefinedWinsAndIsNotNormalised) {
  Vocabulary vocabulary = Small({{"ab", -0.5}});
  AddToken(vocabulary, "abc", Vocabulary::USER_DEFINED, 0);  // 11
  EXPECT_THAT(Ids(vocabulary, "abcd"), ElementsAre(11, 8));
  EXPECT_THAT(Ids(vocabulary, "abd"), ElementsAre(10, 8));
}

TEST(Unigram, ControlAndUnusedPiecesMatchNoText) {
  Vocabulary vocabulary = Small({{"ab", -1}});
  vocabulary.set_types(10, Vocabulary::UNUSED);
  EXPECT_THAT(Ids(vocabulary, "ab"), ElementsAre(5, 6));
  EXPECT_THAT(Ids(vocabulary, "<s>"), ElementsAre(3));
}

TEST(Unigram, OnlyAnEndIsPutWhereNothingIsSaid) {
  const auto tokenizer = MakeTokenizer(Small({}));
  EXPECT_THAT(Encode(*tokenizer, "a", {}), ElementsAre(5, 2));
}

TEST(Unigram, ScoresMayBeAnything) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float score : {kInfinity, -kInfinity, 3e38f, -3e38f}) {
    Vocabulary vocabulary = Small({{"ab", score}, {"ba", -score}});
    for (int id = 4; id < 10; ++id) vocabulary.set_scores(id, -score);
    EXPECT_FALSE(Ids(vocabulary, "ababxbaab").empty());
  }
}

TEST(Unigram, PiecesThatAreTooLongAreRefused) {
  const Vocabulary vocabulary = Small({{std::string(1025, 'a'), -1}});
  EXPECT_THAT(std::string(Tokenizer::Create(vocabulary).status().message()),
              HasSubstr("1025 bytes are too many"));
}

// Rules as SentencePiece writes them: a trie by hand.
class Rules {
 public:
  Rules() : units_(512, 0) {
    // The root's children stand from 256 on: 256 ^ byte.
    SetOffset(0, 256);
  }
  // Of one byte; what follows it stands from `place` on.
  void Add(char byte, uint32_t place, const std::string& replacement) {
    const uint32_t node = 256 ^ static_cast<uint8_t>(byte);
    units_[node] = static_cast<uint8_t>(byte) | 1u << 8;
    SetOffset(node, node ^ place);
    units_[place] = static_cast<uint32_t>(texts_.size()) | 1u << 31;
    texts_ += replacement + '\0';
  }
  std::string Bytes() const {
    std::string bytes(4, '\0');
    const uint32_t size = static_cast<uint32_t>(units_.size() * 4);
    std::memcpy(bytes.data(), &size, 4);
    bytes.append(reinterpret_cast<const char*>(units_.data()), size);
    return bytes + texts_;
  }

 private:
  void SetOffset(uint32_t node, uint32_t offset) {
    units_[node] |= offset << 10;
  }

  std::vector<uint32_t> units_;
  std::string texts_;
};

TEST(Charsmap, ReplacesWhatRulesSay) {
  Rules rules;
  rules.Add('x', 1, "ab");
  rules.Add('y', 2, "");
  rules.Add('\t', 3, " ");
  const auto charsmap = Charsmap::Create(rules.Bytes());
  ASSERT_TRUE(charsmap.ok()) << charsmap.status();
  EXPECT_EQ(charsmap->Find("xy").size, 1u);
  EXPECT_EQ(charsmap->Find("xy").replacement, "ab");
  EXPECT_EQ(charsmap->Find("y").replacement, "");
  EXPECT_EQ(charsmap->Find("a").size, 0u);
  Vocabulary vocabulary = Small({});
  vocabulary.set_remove_extra_whitespaces(true);
  vocabulary.set_charsmap(rules.Bytes());
  EXPECT_THAT(Ids(vocabulary, "\t x\t\tya\t"), ElementsAre(5, 6, 4, 5));
}

TEST(Charsmap, BadSizesAreRefused) {
  const std::string good = []() {
    Rules rules;
    rules.Add('x', 1, "ab");
    return rules.Bytes();
  }();
  const auto error = [](const std::string& bytes) {
    return std::string(Charsmap::Create(bytes).status().message());
  };
  EXPECT_THAT(error("abc"), HasSubstr("cut off"));
  EXPECT_THAT(error(good.substr(0, 100)), HasSubstr("a trie of 2048 bytes"));
  EXPECT_THAT(error(std::string(4, '\0')), HasSubstr("a trie of 0 bytes"));
  EXPECT_THAT(error(good.substr(0, good.size() - 1)), HasSubstr("no end"));
  EXPECT_THAT(error(good + std::string(300, 'a') + '\0'),
              HasSubstr("more than 256 bytes"));
  EXPECT_TRUE(Charsmap::Create("").ok());
}

// Indices that lead nowhere end a rule, whatever they are.
TEST(Charsmap, AnyTrieIsSafe) {
  std::mt19937 random(7);
  Rules rules;
  rules.Add('x', 1, "ab");
  rules.Add('a', 2, "y");
  const std::string good = rules.Bytes();
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    for (int flips = 0; flips < 20; ++flips) {
      bad[4 + random() % (bad.size() - 4)] = static_cast<char>(random());
    }
    const auto charsmap = Charsmap::Create(bad);
    if (!charsmap.ok()) continue;
    for (const char* text : {"xxaax", "\xff\xfe\xfd", "abcdefgh"}) {
      const Charsmap::Match match = charsmap->Find(text);
      EXPECT_LE(match.size, std::strlen(text));
      EXPECT_LE(match.replacement.size(), Charsmap::kLongest);
    }
  }
}

// A cut of any text gives back its normal form, piece by piece.
TEST(Unigram, PiecesMakeUpTheText) {
  std::mt19937 random(11);
  const auto tokenizer =
      MakeTokenizer(Small({{"ab", -2}, {"bc", -3}, {"cab", -1}, {"▁a", -2}}));
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (size_t n = random() % 40; n > 0; --n) text += "abcde "[random() % 6];
    EXPECT_EQ(*tokenizer->DecodeBytes(Encode(*tokenizer, text, kPlain), {}),
              text);
  }
}

TEST(Unigram, EndsEarlyWhereNobodyWantsTheIds) {
  const auto tokenizer = MakeTokenizer(Small({{"ab", -2}}));
  EncodeOptions options = kPlain;
  int asked = 0;
  options.unwanted = [&] { return ++asked > 1; };
  EXPECT_EQ(tokenizer->Encode(Repeat("ab", 100000), options).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace weft
