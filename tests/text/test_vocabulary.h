// Tiny vocabularies for tests, made in code.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "text/tokenizer.h"
#include "text/vocabulary.pb.h"

namespace weft {

inline void AddToken(Vocabulary& vocabulary, const std::string& text,
                     Vocabulary::TokenType type, float score = 0.0f) {
  vocabulary.add_tokens(text);
  vocabulary.add_types(type);
  vocabulary.add_scores(score);
}

// 300 tokens: <unk> <s> </s>, byte tokens from 3, "▁" 259, letters from 260,
// words from 286 (286 "▁h", 290 "llo", 296 "▁the").
inline Vocabulary SpmVocabulary() {
  Vocabulary vocabulary;
  vocabulary.set_model("llama");
  vocabulary.set_bos(1);
  vocabulary.set_eos(2);
  vocabulary.set_unknown(0);
  vocabulary.set_separator(-1);
  vocabulary.set_padding(-1);
  vocabulary.set_end_of_turn(-1);
  AddToken(vocabulary, "<unk>", Vocabulary::UNKNOWN);
  AddToken(vocabulary, "<s>", Vocabulary::CONTROL);
  AddToken(vocabulary, "</s>", Vocabulary::CONTROL);
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", byte);
    AddToken(vocabulary, text, Vocabulary::BYTE);
  }
  float score = -1000.0f;
  AddToken(vocabulary, "▁", Vocabulary::NORMAL, score);
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    AddToken(vocabulary, std::string(1, letter), Vocabulary::NORMAL, --score);
  }
  score = -26.0f;
  for (const char* word : {"▁h", "he", "ll", "lo", "llo", "hello", "▁hello",
                           "▁t", "th", "▁th", "▁the", "in", "an", "er"}) {
    AddToken(vocabulary, word, Vocabulary::NORMAL, --score);
  }
  return vocabulary;
}

// How GPT-2 writes a byte.
inline std::string WriteByte(int byte) {
  const auto printable = [](int b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  int code_point = byte;
  if (!printable(byte)) {
    code_point = 0x100;
    for (int b = 0; b < byte; ++b) code_point += !printable(b);
  }
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0 | code_point >> 6),
          static_cast<char>(0x80 | (code_point & 0x3F))};
}

// 274 tokens: byte b is token b, words from 256, "xyz" 270 (which no merge
// makes),
// <|begin|> 271, <|end|> 272, the user-defined <|user|> 273.
inline Vocabulary BpeVocabulary(const std::string& pre) {
  Vocabulary vocabulary;
  vocabulary.set_model("gpt2");
  vocabulary.set_pre(pre);
  vocabulary.set_bos(271);
  vocabulary.set_eos(272);
  vocabulary.set_unknown(-1);
  vocabulary.set_separator(-1);
  vocabulary.set_padding(-1);
  vocabulary.set_end_of_turn(-1);
  for (int byte = 0; byte < 256; ++byte) {
    AddToken(vocabulary, WriteByte(byte), Vocabulary::NORMAL);
  }
  for (const char* word : {"bc", "ab", "12", "34", "1234", "123", "Mg", "ĠĠ",
                           "Ġh", "ĊĊ", "->", "t-", ">Ċ", "ĠĠĠ", "xyz"}) {
    AddToken(vocabulary, word, Vocabulary::NORMAL);
  }
  AddToken(vocabulary, "<|begin|>", Vocabulary::CONTROL);
  AddToken(vocabulary, "<|end|>", Vocabulary::CONTROL);
  AddToken(vocabulary, "<|user|>", Vocabulary::USER_DEFINED);
  vocabulary.clear_scores();
  for (const char* merge : {"b c", "a b", "1 2", "3 4", "12 34", "12 3", "M g",
                            "Ġ Ġ", "Ġ h", "Ċ Ċ", "- >", "t -", "> Ċ", "ĠĠ Ġ"}) {
    vocabulary.add_merges(merge);
  }
  return vocabulary;
}

// 283 tokens: <pad> <eos> <bos> <unk>, letters from 4, "▁" 30, words from 31,
// byte tokens from 43 (which stand anywhere), "<|turn>" 299.
inline Vocabulary Gemma4Vocabulary() {
  Vocabulary vocabulary;
  vocabulary.set_model("gemma4");
  vocabulary.set_pre("gemma4");
  vocabulary.set_bos(2);
  vocabulary.set_eos(1);
  vocabulary.set_unknown(3);
  vocabulary.set_separator(-1);
  vocabulary.set_padding(0);
  vocabulary.set_end_of_turn(-1);
  for (const char* text : {"<pad>", "<eos>", "<bos>"}) {
    AddToken(vocabulary, text, Vocabulary::CONTROL);
  }
  AddToken(vocabulary, "<unk>", Vocabulary::UNKNOWN);
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    AddToken(vocabulary, std::string(1, letter), Vocabulary::NORMAL);
  }
  AddToken(vocabulary, "▁", Vocabulary::NORMAL);
  for (const char* word : {"▁▁", "▁a", "he", "ll", "llo", "hello", "▁hello",
                           "\n", "\n\n", "\n\n\n", "é", "o▁a"}) {
    AddToken(vocabulary, word, Vocabulary::NORMAL);
  }
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", byte);
    AddToken(vocabulary, text, Vocabulary::BYTE);
  }
  AddToken(vocabulary, "<|turn>", Vocabulary::CONTROL);
  vocabulary.clear_scores();
  for (const char* merge : {"\n \n", "▁ ▁", "l l", "h e", "ll o", "he llo",
                            "▁ hello", "o ▁a", "▁ a"}) {
    vocabulary.add_merges(merge);
  }
  return vocabulary;
}

inline std::unique_ptr<const Tokenizer> MakeTokenizer(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::Create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

// Encodes what must be encodable.
inline std::vector<int32_t> Encode(const Tokenizer& tokenizer,
                                   absl::string_view text,
                                   const EncodeOptions& options) {
  const auto ids = tokenizer.Encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.ok() ? *ids : std::vector<int32_t>();
}

inline std::string Repeat(absl::string_view unit, size_t count) {
  std::string text;
  text.reserve(unit.size() * count);
  for (size_t i = 0; i < count; ++i) text.append(unit.data(), unit.size());
  return text;
}

}  // namespace weft
