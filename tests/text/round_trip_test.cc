// Properties of both families on random text and random bytes.
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tests/text/test_vocabulary.h"
#include "text/stream_decoder.h"
#include "text/utf8.h"

namespace weft {
namespace {

void AppendCodePoint(uint32_t c, std::string& text) {
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xE0 | c >> 12);
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | c >> 18);
    text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
  }
  if (c >= 0x80) text += static_cast<char>(0x80 | (c & 0x3F));
}

// Code points of all planes, and pieces that tokenisers treat in special ways.
std::string RandomText(std::mt19937& random) {
  const char* const kParts[] = {" ",  "  ",  "\n",  "hello", "the", "\u2581",
                                "12", "xyz", "abc", "->",    "<s",  "'ll"};
  std::string text;
  for (int i = random() % 40; i > 0; --i) {
    const uint32_t limits[] = {0x80, 0x800, 0xD800, 0x110000};
    const uint32_t c = random() % limits[random() % 4];
    if (random() % 2 == 0) {
      text += kParts[random() % std::size(kParts)];
    } else if (c < 0xD800 || c > 0xDFFF) {
      AppendCodePoint(c, text);
    }
  }
  return text;
}

std::string RandomBytes(std::mt19937& random) {
  std::string bytes(random() % 60, '\0');
  // Half of them from the range of lead and continuation bytes.
  for (char& byte : bytes) byte = random() | (random() % 2 ? 0x80 : 0);
  return bytes;
}

std::vector<Vocabulary> Vocabularies() {
  std::vector<Vocabulary> all = {SpmVocabulary()};
  all.push_back(SpmVocabulary());
  all.back().set_add_space_prefix(false);
  for (const char* pre : {"default", "gpt-2", "llama-bpe", "qwen2", "falcon",
                          "deepseek-llm", "deepseek-coder", "gpt-4o"}) {
    all.push_back(BpeVocabulary(pre));
  }
  return all;
}

void ExpectRoundTrip(const Tokenizer& tokenizer, const std::string& bytes) {
  for (const bool add_special : {false, true}) {
    const auto ids = tokenizer.Encode(bytes, {add_special, false, false});
    ASSERT_TRUE(ids.ok()) << ids.status();
    for (const int32_t id : *ids) ASSERT_TRUE(tokenizer.InRange(id));
    EXPECT_EQ(*tokenizer.DecodeBytes(*ids, {}), bytes);
    const std::string text = *tokenizer.Decode(*ids, {});
    EXPECT_EQ(text, RepairUtf8(bytes));

    StreamDecoder stream(tokenizer, {});
    std::string streamed;
    for (const int32_t id : *ids) {
      const std::string chunk = *stream.Push(id);
      EXPECT_EQ(ValidUtf8Prefix(chunk), chunk.size());
      streamed += chunk;
    }
    EXPECT_EQ(streamed + stream.Finish(), text);
  }
}

TEST(RoundTrip, RandomTextComesBack) {
  std::mt19937 random(3);
  for (const Vocabulary& vocabulary : Vocabularies()) {
    const auto tokenizer = MakeTokenizer(vocabulary);
    for (int i = 0; i < 300; ++i) {
      ExpectRoundTrip(*tokenizer, RandomText(random));
    }
  }
}

TEST(RoundTrip, RandomBytesComeBack) {
  std::mt19937 random(4);
  for (const Vocabulary& vocabulary : Vocabularies()) {
    const auto tokenizer = MakeTokenizer(vocabulary);
    for (int i = 0; i < 300; ++i) {
      ExpectRoundTrip(*tokenizer, RandomBytes(random));
    }
  }
}

TEST(RoundTrip, SpecialTokensComeBackWhenPrinted) {
  std::mt19937 random(5);
  for (const Vocabulary& vocabulary : Vocabularies()) {
    const auto tokenizer = MakeTokenizer(vocabulary);
    const int32_t count = tokenizer->vocabulary_size();
    for (int i = 0; i < 200; ++i) {
      std::string text = RandomText(random);
      text += std::string(
          tokenizer->Piece(random() % 2 ? tokenizer->bos() : count - 1));
      text += RandomText(random);
      const auto ids = Encode(*tokenizer, text, {false, true, false});
      EXPECT_EQ(*tokenizer->DecodeBytes(ids, {/*skip_special=*/false}), text);
    }
  }
}

// Any ids, not only those that Encode gives: never half a character, and the
// joined chunks are what Decode says.
TEST(RoundTrip, StreamsOfRandomIdsEqualDecode) {
  std::mt19937 random(6);
  for (const Vocabulary& vocabulary : Vocabularies()) {
    const auto tokenizer = MakeTokenizer(vocabulary);
    for (int i = 0; i < 300; ++i) {
      std::vector<int32_t> ids(random() % 30);
      for (int32_t& id : ids) id = random() % tokenizer->vocabulary_size();
      DecodeOptions options;
      options.skip_special = random() % 2 == 0;
      options.continues_text = random() % 2 == 0;
      StreamDecoder stream(*tokenizer, options);
      std::string streamed;
      for (const int32_t id : ids) {
        const std::string chunk = *stream.Push(id);
        EXPECT_EQ(ValidUtf8Prefix(chunk), chunk.size());
        streamed += chunk;
      }
      EXPECT_EQ(streamed + stream.Finish(), *tokenizer->Decode(ids, options));
    }
  }
}

}  // namespace
}  // namespace weft
