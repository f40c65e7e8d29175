#include "text/normalize.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/text/test_vocabulary.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

const EncodeOptions kPlain = {/*add_special=*/false};
const EncodeOptions kAsItIs = {/*add_special=*/false,
                               /*parse_special=*/true,
                               /*normalize=*/false};

TEST(ToNfc, ComposesAndSortsMarks) {
  EXPECT_EQ(ToNfc("plain"), "plain");
  EXPECT_EQ(ToNfc("e\u0301"), "\u00e9");
  EXPECT_EQ(ToNfc("\u1112\u1161\u11ab"), "\ud55c");
  EXPECT_EQ(ToNfc("a\u0301\u0323"), "\u1ea1\u0301");
  // Bengali o of two parts; a nukta that composition leaves out.
  EXPECT_EQ(ToNfc("\u0995\u09c7\u09be"), "\u0995\u09cb");
  EXPECT_EQ(ToNfc("\u0958"), "\u0915\u093c");
  // Compatibility forms are not canonical ones.
  EXPECT_EQ(ToNfc("\ufb01\u00b2"), "\ufb01\u00b2");
}

TEST(ToNfc, LeavesIllFormedBytes) {
  EXPECT_EQ(ToNfc("e\u0301\xff\xc3"), "\u00e9\xff\xc3");
  EXPECT_EQ(ToNfc("e\xff\u0301"), "e\xff\u0301");
  const std::string zero("e\u0301\0e\u0301", 7);
  EXPECT_EQ(ToNfc(zero), std::string("\u00e9\0\u00e9", 5));
}

TEST(ToNfc, EndlessMarksTakeNoEndlessTime) {
  const std::string marks = Repeat("\u0301\u0323", 1 << 19);
  EXPECT_EQ(ToNfc("x" + marks).size(), marks.size() + 1);
}

TEST(Normalization, IsDoneWhereThePublishedTokeniserDoesIt) {
  for (const char* pre : {"qwen2", "olmo", "command-r", "tiny_aya"}) {
    const auto tokenizer = MakeTokenizer(BpeVocabulary(pre));
    EXPECT_THAT(Encode(*tokenizer, "e\u0301<|end|>e\u0301", kPlain),
                ElementsAre(0xC3, 0xA9, 272, 0xC3, 0xA9));
    EXPECT_THAT(Encode(*tokenizer, "e\u0301", kAsItIs),
                ElementsAre('e', 0xCC, 0x81));
  }
  const auto tokenizer = MakeTokenizer(BpeVocabulary("llama-bpe"));
  EXPECT_THAT(Encode(*tokenizer, "e\u0301", kPlain),
              ElementsAre('e', 0xCC, 0x81));
}

TEST(Separators, StandBehindWhereThePreTokeniserWantsThem) {
  for (const char* pre : {"roberta-bpe", "jina-v1-en", "jina-v2-code"}) {
    Vocabulary vocabulary = BpeVocabulary(pre);
    EXPECT_THAT(Encode(*MakeTokenizer(vocabulary), "a", {}),
                ElementsAre('a', 272));
    vocabulary.set_add_eos(false);
    EXPECT_THAT(Encode(*MakeTokenizer(vocabulary), "a", {}), ElementsAre('a'));
  }
}

}  // namespace
}  // namespace weft
