// Byte-level BPE, through Tokenizer.
#include "text/bpe.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/text/test_vocabulary.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const EncodeOptions kPlain = {/*add_special=*/false,
                              /*parse_special=*/true};

TEST(Bpe, MergesByRankNotFromTheLeft) {
  for (const char* pre : {"gpt-2", "llama-bpe", "qwen2", "deepseek-coder"}) {
    EXPECT_THAT(Encode(*MakeTokenizer(BpeVocabulary(pre)), "abc", kPlain),
                ElementsAre(97, 256));
  }
}

// A merge that stands twice has the rank of its first place.
TEST(Bpe, TheFirstOfEqualMergesCounts) {
  for (const char* pre : {"gpt-2", "qwen2"}) {
    Vocabulary vocabulary = BpeVocabulary(pre);
    // "b c" comes before "a b": again, behind all others, changes nothing.
    vocabulary.add_merges("b c");
    EXPECT_THAT(Encode(*MakeTokenizer(vocabulary), "abc", kPlain),
                ElementsAre(97, 256));
  }
}

TEST(Bpe, TakesAWholePieceFirstOnlyForLlama3) {
  EXPECT_THAT(Encode(*MakeTokenizer(BpeVocabulary("llama-bpe")), "xyz", kPlain),
              ElementsAre(270));
  for (const char* pre : {"gpt-2", "qwen2"}) {
    EXPECT_THAT(Encode(*MakeTokenizer(BpeVocabulary(pre)), "xyz", kPlain),
                ElementsAre(120, 121, 122));
  }
}

TEST(Bpe, CutsDigitsAndSignsAsTheFamilyDoes) {
  const struct {
    const char *pre, *text;
    std::vector<int32_t> ids;
  } cases[] = {
      {"gpt-2", "1234", {260}},
      {"llama-bpe", "1234", {261, 52}},
      {"qwen2", "1234", {49, 50, 51, 52}},
      {"deepseek-coder", "1234", {49, 50, 51, 52}},
      {"gpt-2", "t->", {116, 266}},
      {"deepseek-coder", "t->", {116, 45, 62}},
      {"qwen2", "\U0001F999", {240, 159, 166, 153}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Encode(*MakeTokenizer(BpeVocabulary(c.pre)), c.text, kPlain),
              c.ids)
        << c.pre << ": " << c.text;
  }
}

TEST(Bpe, AProductThatIsNoTokenFallsBackToBytes) {
  Vocabulary vocabulary = BpeVocabulary("gpt-2");
  vocabulary.add_merges("q r");
  EXPECT_THAT(Encode(*MakeTokenizer(vocabulary), "pqrs", kPlain),
              ElementsAre('p', 'q', 'r', 's'));
}

TEST(Bpe, IllFormedBytesAreTheirTokens) {
  const auto tokenizer = MakeTokenizer(BpeVocabulary("llama-bpe"));
  EXPECT_THAT(Encode(*tokenizer,
                     "a\xFF\xE6\xBC"
                     "b",
                     kPlain),
              ElementsAre('a', 0xFF, 0xE6, 0xBC, 'b'));
}

TEST(Bpe, AByteWithoutTokenIsReplacedOrUnknownOrAnError) {
  Vocabulary vocabulary = BpeVocabulary("gpt-2");
  vocabulary.set_tokens('q', "gone");
  EXPECT_THAT(Encode(*MakeTokenizer(vocabulary), "q", kPlain),
              ElementsAre(0xEF, 0xBF, 0xBD));
  vocabulary.set_tokens(0xBF, "gone too");
  const auto ids = MakeTokenizer(vocabulary)->Encode("q", kPlain);
  EXPECT_THAT(std::string(ids.status().message()), HasSubstr("0x71"));
  vocabulary.set_unknown(3);
  EXPECT_THAT(Encode(*MakeTokenizer(vocabulary), "q", kPlain), ElementsAre(3));
}

TEST(Bpe, LongRunsGiveTheirCount) {
  const struct {
    const char* unit;
    size_t count;
    size_t tokens;        // most families
    size_t tokens_coder;  // deepseek-coder
  } cases[] = {
      {"A", 43000, 43000, 43000},     {"ab", 50000, 50000, 50000},
      {"\n", 20000, 10000, 20000},    {" ", 26000, 13000, 13000},
      {".", 26000, 26000, 26000},     {"hello", 40000, 200000, 200000},
      {" ", 1000000, 500000, 500000}, {"x", 1000000, 1000000, 1000000}};
  for (const char* pre : {"gpt-2", "llama-bpe", "qwen2", "deepseek-coder"}) {
    const auto tokenizer = MakeTokenizer(BpeVocabulary(pre));
    for (const auto& c : cases) {
      EXPECT_THAT(
          Encode(*tokenizer, Repeat(c.unit, c.count), kPlain),
          SizeIs(pre == absl::string_view("deepseek-coder") ? c.tokens_coder
                                                            : c.tokens))
          << pre << ": " << c.unit;
    }
  }
}

// Gemma 4: characters, not bytes, are joined; spaces count as U+2581.
TEST(Bpe, RawVocabulariesJoinCharacters) {
  const auto tokenizer = MakeTokenizer(Gemma4Vocabulary());
  const auto ids = [&](absl::string_view text) {
    return Encode(*tokenizer, text, kPlain);
  };
  EXPECT_THAT(ids("hello"), ElementsAre(36));
  // Nothing is put before a text, and words are not cut apart.
  EXPECT_THAT(ids("hello hello"), ElementsAre(36, 37));
  EXPECT_THAT(ids("  a"), ElementsAre(31, 4));
  EXPECT_THAT(ids("o a"), ElementsAre(42));
  EXPECT_THAT(ids("\u00e9"), ElementsAre(41));
  // Of no token: each byte's. Half characters too.
  EXPECT_THAT(ids("\u00e8"), ElementsAre(43 + 0xC3, 43 + 0xA8));
  EXPECT_THAT(ids("h1\xF0"), ElementsAre(11, 43 + '1', 43 + 0xF0));
  EXPECT_THAT(ids("\r\t"), ElementsAre(43 + '\r', 43 + '\t'));
}

// A run of line ends that is a token is one, though no merge makes it.
TEST(Bpe, RawVocabulariesAreCutAtLineEndsOnly) {
  const auto tokenizer = MakeTokenizer(Gemma4Vocabulary());
  const auto ids = [&](absl::string_view text) {
    return Encode(*tokenizer, text, kPlain);
  };
  EXPECT_THAT(ids("a\n\n\nb"), ElementsAre(4, 40, 5));
  EXPECT_THAT(ids("\n\n"), ElementsAre(39));
  EXPECT_THAT(ids("\n\n\n\n"), ElementsAre(39, 39));
  EXPECT_THAT(ids("a\n a"), ElementsAre(4, 38, 32));
}

TEST(Bpe, RawVocabulariesComeBackAndPutBos) {
  const auto tokenizer = MakeTokenizer(Gemma4Vocabulary());
  EXPECT_THAT(Encode(*tokenizer, "<|turn>a", {}), ElementsAre(2, 299, 4));
  for (const char* text :
       {"hello  a\n\n\n x", " lead", "\u2581", "na\u00efve \U0001F999\r\n",
        "<0x41> <|turn>", "\xE6\x9C z\x9b"}) {
    const auto ids = Encode(*tokenizer, text, kPlain);
    EXPECT_EQ(*tokenizer->DecodeBytes(ids, {/*skip_special=*/false}), text);
  }
}

TEST(Bpe, AByteTokenOfARawVocabularyIsChecked) {
  Vocabulary vocabulary = Gemma4Vocabulary();
  vocabulary.set_tokens(50, "<0xZZ>");
  EXPECT_THAT(std::string(Tokenizer::Create(vocabulary).status().message()),
              HasSubstr("token 50"));
}

TEST(Bpe, BosIsPutAsThePretokenizerSays) {
  for (const char* pre : {"llama-bpe", "llama3", "tekken", "falcon3", "lfm2",
                          "chameleon", "pixtral"}) {
    EXPECT_TRUE(MakeTokenizer(BpeVocabulary(pre))->add_bos()) << pre;
  }
  for (const char* pre : {"gpt-2", "qwen2", "laguna", "minicpm5", "youtu"}) {
    EXPECT_FALSE(MakeTokenizer(BpeVocabulary(pre))->add_bos()) << pre;
  }
}

}  // namespace
}  // namespace weft
