// SentencePiece BPE, through Tokenizer.
#include "text/spm.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/text/test_vocabulary.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const EncodeOptions kPlain = {/*add_special=*/false,
                              /*parse_special=*/true};
const EncodeOptions kWithBos = {/*add_special=*/true,
                                /*parse_special=*/true};

TEST(Spm, PutsOneSpaceBeforeTheText) {
  const auto tokenizer = MakeTokenizer(SpmVocabulary());
  EXPECT_THAT(Encode(*tokenizer, "hello", kWithBos),
              ElementsAre(1, 286, 264, 290));
  EXPECT_THAT(Encode(*tokenizer, " hello", kWithBos),
              ElementsAre(1, 259, 286, 264, 290));
  EXPECT_THAT(Encode(*tokenizer, "  hello", kWithBos),
              ElementsAre(1, 259, 259, 286, 264, 290));
  EXPECT_THAT(Encode(*tokenizer, "the in", kWithBos),
              ElementsAre(1, 296, 259, 297));
  EXPECT_THAT(Encode(*tokenizer, "", kWithBos), ElementsAre(1));
  EXPECT_THAT(Encode(*tokenizer, "", kPlain), IsEmpty());
}

TEST(Spm, PutsTheSpaceAgainAfterASpecialToken) {
  const auto tokenizer = MakeTokenizer(SpmVocabulary());
  EXPECT_THAT(Encode(*tokenizer, "<s>hello", kPlain),
              ElementsAre(1, 286, 264, 290));
  EXPECT_THAT(Encode(*tokenizer, "hello</s>hello", kPlain),
              ElementsAre(286, 264, 290, 2, 286, 264, 290));
  EXPECT_THAT(Encode(*tokenizer, "</s>\n", kPlain), ElementsAre(2, 259, 13));
}

TEST(Spm, PutsNoSpaceWhereTheVocabularyWantsNone) {
  Vocabulary vocabulary = SpmVocabulary();
  vocabulary.set_add_space_prefix(false);
  const auto tokenizer = MakeTokenizer(vocabulary);
  EXPECT_THAT(Encode(*tokenizer, "hello", kPlain), ElementsAre(291));
  EXPECT_THAT(*tokenizer->Decode({286, 264}, {}), " he");
}

TEST(Spm, JoinsByScoreThenFromTheLeft) {
  Vocabulary vocabulary = SpmVocabulary();
  vocabulary.set_add_space_prefix(false);
  AddToken(vocabulary, "xx", Vocabulary::NORMAL, -5);  // 300
  AddToken(vocabulary, "xy", Vocabulary::NORMAL, -4);  // 301
  AddToken(vocabulary, "yx", Vocabulary::NORMAL, -4);  // 302
  const auto tokenizer = MakeTokenizer(vocabulary);
  EXPECT_THAT(Encode(*tokenizer, "xxx", kPlain), ElementsAre(300, 283));
  EXPECT_THAT(Encode(*tokenizer, "xxy", kPlain), ElementsAre(283, 301));
  EXPECT_THAT(Encode(*tokenizer, "yxy", kPlain), ElementsAre(302, 284));
}

TEST(Spm, FallsBackToBytes) {
  const auto tokenizer = MakeTokenizer(SpmVocabulary());
  EXPECT_THAT(Encode(*tokenizer, "\u00E9", kPlain),
              ElementsAre(259, 3 + 0xC3, 3 + 0xA9));
  // Bytes that are no UTF-8 too, each as it is.
  EXPECT_THAT(Encode(*tokenizer, "\xFF\xC3", kPlain),
              ElementsAre(259, 3 + 0xFF, 3 + 0xC3));
  // A U+2581 of the user's is not a space.
  EXPECT_THAT(Encode(*tokenizer, "\u2581", kPlain),
              ElementsAre(259, 3 + 0xE2, 3 + 0x96, 3 + 0x81));
}

TEST(Spm, AByteWithoutTokenIsUnknownOrAnError) {
  Vocabulary vocabulary = SpmVocabulary();
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.set_types(3 + byte, Vocabulary::UNUSED);
  }
  EXPECT_THAT(Encode(*MakeTokenizer(vocabulary), "1", kPlain),
              ElementsAre(259, 0));
  vocabulary.set_unknown(-1);
  const auto ids = MakeTokenizer(vocabulary)->Encode("1", kPlain);
  EXPECT_THAT(std::string(ids.status().message()), HasSubstr("0x31"));
}

TEST(Spm, ControlTokensDoNotComeAboutByJoining) {
  Vocabulary vocabulary = SpmVocabulary();
  AddToken(vocabulary, "<", Vocabulary::NORMAL, -900);
  AddToken(vocabulary, "s>", Vocabulary::NORMAL, -10);
  const auto tokenizer = MakeTokenizer(vocabulary);
  EXPECT_THAT(Encode(*tokenizer, "<s>", {false, false}),
              ElementsAre(259, 300, 301));
}

TEST(Spm, LongRunsGiveTheirCount) {
  const auto tokenizer = MakeTokenizer(SpmVocabulary());
  EXPECT_THAT(Encode(*tokenizer, Repeat("A", 43000), kPlain), SizeIs(43001));
  EXPECT_THAT(Encode(*tokenizer, Repeat("hello", 40000), kPlain),
              SizeIs(40002));
  EXPECT_THAT(Encode(*tokenizer, Repeat("\n", 20000), kPlain), SizeIs(20001));
  EXPECT_THAT(Encode(*tokenizer, Repeat(" ", 1000000), kPlain),
              SizeIs(1000001));
  EXPECT_THAT(Encode(*tokenizer, Repeat("l", 1000000), kPlain), SizeIs(500001));
}

// Tokens with a space after something else bar the cut into words.
TEST(Spm, TokensMayReachOverASpace) {
  Vocabulary vocabulary = SpmVocabulary();
  vocabulary.set_add_space_prefix(false);
  AddToken(vocabulary, "o▁", Vocabulary::NORMAL, -1);   // 300
  AddToken(vocabulary, "o▁t", Vocabulary::NORMAL, -2);  // 301
  AddToken(vocabulary, "o▁▁", Vocabulary::NORMAL, -3);  // 302
  const auto tokenizer = MakeTokenizer(vocabulary);
  EXPECT_THAT(Encode(*tokenizer, "lo to", kPlain), ElementsAre(271, 301, 274));
  EXPECT_THAT(Encode(*tokenizer, "o  ", kPlain), ElementsAre(302));
}

}  // namespace
}  // namespace weft
