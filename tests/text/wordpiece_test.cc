// WordPiece, through Tokenizer.
#include "text/wordpiece.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/text/test_vocabulary.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const EncodeOptions kPlain = {/*add_special=*/false,
                              /*parse_special=*/true};

// [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, then pieces from 4; `mark` begins those
// that begin a word, `rest` those that continue one.
Vocabulary Pieces(const std::string& mark, const std::string& rest) {
  Vocabulary vocabulary;
  vocabulary.set_model("bert");
  vocabulary.set_bos(2);
  vocabulary.set_eos(3);
  vocabulary.set_unknown(1);
  vocabulary.set_separator(3);
  vocabulary.set_padding(0);
  vocabulary.set_end_of_turn(-1);
  vocabulary.set_add_eos(true);
  for (const char* text : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) {
    AddToken(vocabulary, text, Vocabulary::CONTROL);
  }
  // 4 to 12
  for (const char* text :
       {"un", "cafe", "the", ",", "\u4e2d", "a", "\u00df", "[", "\u0436"}) {
    AddToken(vocabulary, mark + text, Vocabulary::NORMAL);
  }
  // 13 to 16
  for (const char* text : {"aff", "able", "a", "b"}) {
    AddToken(vocabulary, rest + text, Vocabulary::NORMAL);
  }
  return vocabulary;
}

Vocabulary MarkedWords() { return Pieces("\u2581", ""); }

TEST(Wordpiece, TakesTheLongestPieceFirst) {
  for (const Vocabulary& vocabulary : {MarkedWords(), Pieces("", "##")}) {
    const auto tokenizer = MakeTokenizer(vocabulary);
    EXPECT_THAT(Encode(*tokenizer, "unaffable", kPlain),
                ElementsAre(4, 13, 14));
    EXPECT_THAT(Encode(*tokenizer, "aab", kPlain), ElementsAre(9, 15, 16));
    EXPECT_THAT(Encode(*tokenizer, "", kPlain), IsEmpty());
  }
}

TEST(Wordpiece, AWordOfMoreThanAHundredCharactersIsUnknown) {
  const auto tokenizer = MakeTokenizer(MarkedWords());
  for (const std::string letter : {"a", "\u00df"}) {
    std::string word;
    for (int i = 0; i < 99; ++i) word += "a";
    EXPECT_EQ(Encode(*tokenizer, letter + word, kPlain).size(), 100u);
    EXPECT_THAT(Encode(*tokenizer, letter + word + "a, the", kPlain),
                ElementsAre(1, 7, 6));
  }
}

TEST(Wordpiece, PutsClassAndSeparatorAround) {
  const auto tokenizer = MakeTokenizer(MarkedWords());
  EXPECT_THAT(Encode(*tokenizer, "the", {}), ElementsAre(2, 6, 3));
  EXPECT_THAT(Encode(*tokenizer, "", {}), ElementsAre(2, 3));
  EXPECT_THAT(Encode(*tokenizer, "the[SEP]the", {}),
              ElementsAre(2, 6, 3, 6, 3));
}

TEST(Wordpiece, AWordOfUnknownPiecesIsOneUnknownToken) {
  const auto tokenizer = MakeTokenizer(MarkedWords());
  EXPECT_THAT(Encode(*tokenizer, "unaffxable the", kPlain), ElementsAre(1, 6));
  // A piece that continues a word does not begin one.
  EXPECT_THAT(Encode(*tokenizer, "able", kPlain), ElementsAre(1));
  Vocabulary vocabulary = MarkedWords();
  vocabulary.set_unknown(-1);
  EXPECT_FALSE(MakeTokenizer(vocabulary)->Encode("xyz", {}).ok());
}

TEST(Wordpiece, LowersDropsAccentsAndControlCharacters) {
  const auto tokenizer = MakeTokenizer(MarkedWords());
  EXPECT_THAT(Encode(*tokenizer, "THE", kPlain), ElementsAre(6));
  EXPECT_THAT(Encode(*tokenizer, "CAF\u00c9", kPlain), ElementsAre(5));
  // The same, decomposed; a zero-width joiner and an ill-formed byte between.
  EXPECT_THAT(Encode(*tokenizer, "ca\u200dfe\u0301\x80", kPlain),
              ElementsAre(5));
  EXPECT_THAT(Encode(*tokenizer, "\u0416", kPlain), ElementsAre(12));
  EXPECT_THAT(Encode(*tokenizer, "\u00df", kPlain), ElementsAre(10));
}

TEST(Wordpiece, LeavesCaseAndAccentsWhereTheVocabularySaysSo) {
  Vocabulary vocabulary = MarkedWords();  // up to 16
  for (const char* text : {"The", "caf\u00e9", "Cafe", "the\u0301"}) {
    AddToken(vocabulary, absl::StrCat("\u2581", text), Vocabulary::NORMAL);
  }
  vocabulary.set_lowercase(false);
  auto tokenizer = MakeTokenizer(vocabulary);
  EXPECT_THAT(Encode(*tokenizer, "The the caf\u00e9 the\u0301", kPlain),
              ElementsAre(17, 6, 18, 20));
  vocabulary.set_strip_accents(true);
  tokenizer = MakeTokenizer(vocabulary);
  EXPECT_THAT(Encode(*tokenizer, "The caf\u00e9 Caf\u00e9", kPlain),
              ElementsAre(17, 5, 19));
  vocabulary.set_lowercase(true);
  vocabulary.set_strip_accents(false);
  tokenizer = MakeTokenizer(vocabulary);
  EXPECT_THAT(Encode(*tokenizer, "THE CAF\u00c9", kPlain), ElementsAre(6, 18));
}

TEST(Wordpiece, CutsAtSpacePunctuationAndIdeographs) {
  const auto tokenizer = MakeTokenizer(MarkedWords());
  EXPECT_THAT(Encode(*tokenizer, " the\t\nthe\u00a0the\u3000", kPlain),
              ElementsAre(6, 6, 6));
  EXPECT_THAT(Encode(*tokenizer, "the,,the", kPlain), ElementsAre(6, 7, 7, 6));
  EXPECT_THAT(Encode(*tokenizer, "the\u4e2d\u4e2dthe", kPlain),
              ElementsAre(6, 8, 8, 6));
  // ASCII's symbols count as punctuation.
  EXPECT_THAT(Encode(*tokenizer, "the+the", kPlain), ElementsAre(6, 1, 6));
  // What only looks like a special token is text.
  EncodeOptions text = kPlain;
  text.parse_special = false;
  EXPECT_THAT(Encode(*tokenizer, "[the", text), ElementsAre(11, 6));
}

TEST(Wordpiece, DecodesWords) {
  for (const Vocabulary& vocabulary : {MarkedWords(), Pieces("", "##")}) {
    const auto tokenizer = MakeTokenizer(vocabulary);
    EXPECT_EQ(*tokenizer->Decode({2, 6, 4, 13, 14, 3}, {}), "the unaffable");
  }
}

}  // namespace
}  // namespace weft
