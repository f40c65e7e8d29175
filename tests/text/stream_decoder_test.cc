#include "text/stream_decoder.h"

#include "gtest/gtest.h"
#include "tests/text/test_vocabulary.h"

namespace weft {
namespace {

TEST(StreamDecoder, HoldsACharacterBackUntilItIsWhole) {
  const auto tokenizer = MakeTokenizer(SpmVocabulary());
  StreamDecoder stream(*tokenizer, {});
  EXPECT_EQ(*stream.Push(243), "");
  EXPECT_EQ(*stream.Push(162), "");
  EXPECT_EQ(*stream.Push(169), "");
  EXPECT_EQ(*stream.Push(156), "\U0001F999");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(StreamDecoder, FlushesAnUnfinishedCharacterOnce) {
  const auto tokenizer = MakeTokenizer(SpmVocabulary());
  StreamDecoder stream(*tokenizer, {});
  EXPECT_EQ(*stream.Push(243), "");
  EXPECT_EQ(*stream.Push(162), "");
  EXPECT_EQ(stream.Finish(), "\uFFFD");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(StreamDecoder, ReplacesBytesThatCannotBecomeGoodAtOnce) {
  const auto tokenizer = MakeTokenizer(SpmVocabulary());
  StreamDecoder stream(*tokenizer, {});
  EXPECT_EQ(*stream.Push(3 + 0xFF), "\uFFFD");
  EXPECT_EQ(*stream.Push(3 + 0xF0), "");
  EXPECT_EQ(*stream.Push(265), "\uFFFDf");
  EXPECT_EQ(*stream.Push(3 + 0x19), "\x19");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(StreamDecoder, TreatsTheLeadingSpaceAsDecodeDoes) {
  const auto tokenizer = MakeTokenizer(SpmVocabulary());
  StreamDecoder fresh(*tokenizer, {});
  EXPECT_EQ(*fresh.Push(1), "");
  EXPECT_EQ(*fresh.Push(286), "h");
  EXPECT_EQ(*fresh.Push(286), " h");
  DecodeOptions options;
  options.continues_text = true;
  StreamDecoder continued(*tokenizer, options);
  EXPECT_EQ(*continued.Push(286), " h");
}

TEST(StreamDecoder, AnIdOutOfRangeChangesNothing) {
  const auto tokenizer = MakeTokenizer(SpmVocabulary());
  StreamDecoder stream(*tokenizer, {});
  EXPECT_EQ(*stream.Push(243), "");
  EXPECT_FALSE(stream.Push(300).ok());
  EXPECT_EQ(*stream.Push(162), "");
  EXPECT_EQ(*stream.Push(169), "");
  EXPECT_EQ(*stream.Push(156), "\U0001F999");
}

}  // namespace
}  // namespace weft
