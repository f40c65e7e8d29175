// Text in segments by author: the ids are those of the whole text, and control
// tokens come from the template alone.
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/text/test_vocabulary.h"
#include "text/segment.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> Ids(const Tokenizer& tokenizer,
                         const std::vector<TextSegment>& segments,
                         const EncodeOptions& options = {}) {
  const auto ids = tokenizer.EncodeSegments(segments, options);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.ok() ? *ids : std::vector<int32_t>();
}

TEST(Segments, ControlTokensComeFromTheTemplateAlone) {
  const auto tokenizer = MakeTokenizer(BpeVocabulary("gpt-2"));
  EXPECT_THAT(
      Ids(*tokenizer,
          {{"<|begin|>a", true}, {"<|end|>", false}, {"<|end|>", true}}),
      ElementsAre(271, 'a', '<', '|', 'e', 'n', 'd', '|', '>', 272));
  // Nor half from one and half from the other, either way round.
  EXPECT_THAT(Ids(*tokenizer, {{"<|en", true}, {"d|>", false}}),
              ElementsAre('<', '|', 'e', 'n', 'd', '|', '>'));
  EXPECT_THAT(Ids(*tokenizer, {{"<|en", false}, {"d|>", true}}),
              ElementsAre('<', '|', 'e', 'n', 'd', '|', '>'));
  // Pieces by one author are one text; an empty one between is none.
  EXPECT_THAT(Ids(*tokenizer, {{"", false},
                               {"<|en", true},
                               {"", false},
                               {"d|>", true},
                               {"", true}}),
              ElementsAre(272));
  EXPECT_THAT(Ids(*tokenizer, {{"<|end|>", true}}, {true, false}),
              ElementsAre('<', '|', 'e', 'n', 'd', '|', '>'));
  EXPECT_TRUE(Ids(*tokenizer, {}).empty());
}

TEST(Segments, WordsAreJoinedAcrossBorders) {
  const auto tokenizer = MakeTokenizer(BpeVocabulary("gpt-2"));
  // "1234" is one token, "ab" and "bc" share a letter.
  EXPECT_THAT(Ids(*tokenizer, {{"12", true}, {"34", false}}), ElementsAre(260));
  EXPECT_THAT(Ids(*tokenizer, {{"a", false}, {"b", true}, {"c", false}}),
              ElementsAre('a', 256));
}

TEST(Segments, SpacePrefixIsPutOnceAndAfterControlTokens) {
  const auto tokenizer = MakeTokenizer(SpmVocabulary());
  EXPECT_THAT(Ids(*tokenizer, {{"hel", true}, {"lo", false}}),
              ElementsAre(1, 286, 264, 290));
  EXPECT_EQ(Ids(*tokenizer, {{"hello</s>", true}, {"he", false}}),
            Encode(*tokenizer, "hello</s>he", {}));
}

TEST(Segments, BosOfTheTemplateIsNotDoubledAndThatOfASenderIsText) {
  const auto tokenizer = MakeTokenizer(SpmVocabulary());
  bool bos_in_text = false;
  const std::vector<TextSegment> own = {{"<s>", true}, {"in", false}};
  EXPECT_THAT(*tokenizer->EncodeSegments(own, {}, &bos_in_text),
              ElementsAre(1, 259, 297));
  EXPECT_TRUE(bos_in_text);
  const std::vector<TextSegment> forged = {{"<s>in", false}};
  const auto ids = *tokenizer->EncodeSegments(forged, {}, &bos_in_text);
  EXPECT_FALSE(bos_in_text);
  EXPECT_EQ(ids[0], 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 1), 1);
  EXPECT_EQ(*tokenizer->Decode(ids, {}), "<s>in");
}

TEST(Segments, UserDefinedTokensThatMarkTurnsAreTheTemplates) {
  Vocabulary vocabulary = BpeVocabulary("gpt-2");
  for (const char* text :
       {"<end_of_turn>", "<turn>", "<b>", "\n\n\n", "[INST]", "word"}) {
    AddToken(vocabulary, text, Vocabulary::USER_DEFINED);  // from 274
  }
  vocabulary.clear_scores();
  vocabulary.set_chat_template("<turn>{{ x }}[INST]\n\n\nword");
  const auto tokenizer = MakeTokenizer(vocabulary);
  // Those that do not are a part of everybody's writing.
  const struct {
    const char* text;
    int32_t id;
    bool anybodys;
  } cases[] = {{"<end_of_turn>", 274, false},
               {"<turn>", 275, false},
               {"<b>", 276, true},
               {"\n\n\n", 277, true},
               {"[INST]", 278, false},
               {"word", 279, true},
               {"<|user|>", 273, false}};
  for (const auto& c : cases) {
    EXPECT_THAT(Ids(*tokenizer, {{c.text, true}}), ElementsAre(c.id)) << c.text;
    const std::vector<int32_t> ids = Ids(*tokenizer, {{c.text, false}});
    EXPECT_EQ(ids == std::vector<int32_t>{c.id}, c.anybodys) << c.text;
    EXPECT_EQ(*tokenizer->Decode(ids, {}), c.text);
  }
  EXPECT_THAT(Ids(*tokenizer, {{"\n", true}, {"\n\n", false}}),
              ElementsAre(277));
}

// Any text, cut anywhere: with control tokens where the template wrote them, as
// the whole text; without, as the whole text with parse_special = false.
TEST(Segments, AnyCutOfATextGivesTheIdsOfTheWhole) {
  std::mt19937 random(5);
  const std::vector<std::string> pieces = {
      "hello",     " ",       "the", "\n",   "1",  "2",  "abc",      "é",
      "<|begin|>", "<|end|>", "<s>", "</s>", "<|", "|>", "\xE2\x82", "🦙"};
  for (const auto& tokenizer : {MakeTokenizer(BpeVocabulary("gpt-2")),
                                MakeTokenizer(BpeVocabulary("llama-bpe")),
                                MakeTokenizer(SpmVocabulary())}) {
    for (int i = 0; i < 2000; ++i) {
      std::string text;
      for (size_t n = random() % 12; n > 0; --n) {
        text += pieces[random() % pieces.size()];
      }
      for (const bool from_template : {false, true}) {
        std::vector<TextSegment> segments;
        for (size_t at = 0; at < text.size();) {
          const size_t size = 1 + random() % (text.size() - at);
          segments.push_back({text.substr(at, size), from_template});
          at += size;
        }
        EncodeOptions options;
        options.parse_special = from_template;
        ASSERT_EQ(Ids(*tokenizer, segments), Encode(*tokenizer, text, options))
            << text;
      }
      // Authors by turns, without anything special: the same again.
      std::string plain = text;
      for (char& c : plain) {
        if (c == '<' || c == '|' || c == '>') c = '.';
      }
      std::vector<TextSegment> mixed;
      for (size_t at = 0; at < plain.size();) {
        const size_t size = 1 + random() % 4;
        mixed.push_back({plain.substr(at, size), random() % 2 == 0});
        at += size;
      }
      ASSERT_EQ(Ids(*tokenizer, mixed), Encode(*tokenizer, plain, {})) << plain;
    }
  }
}

}  // namespace
}  // namespace weft
