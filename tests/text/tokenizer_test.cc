#include "text/tokenizer.h"

#include <functional>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/text/test_vocabulary.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TokenizerCreate, NamesWhatIsWrong) {
  const struct {
    const char* message;
    std::function<void(Vocabulary&)> spoil;
  } cases[] = {
      {"'wordpiece'", [](Vocabulary& v) { v.set_model("wordpiece"); }},
      {"tokens: there are none", [](Vocabulary& v) { v = {}; }},
      {"scores: there are 299 for 300",
       [](Vocabulary& v) { v.mutable_scores()->RemoveLast(); }},
      {"score of token 7",
       [](Vocabulary& v) {
         v.set_scores(7, std::numeric_limits<float>::quiet_NaN());
       }},
      {"types: there are 301",
       [](Vocabulary& v) { v.add_types(Vocabulary::NORMAL); }},
      {"type of token 5: 99",
       [](Vocabulary& v) {
         v.set_types(5, static_cast<Vocabulary::TokenType>(99));
       }},
      {"bos token: id 300", [](Vocabulary& v) { v.set_bos(300); }},
      {"end of turn token: id -2",
       [](Vocabulary& v) { v.set_end_of_turn(-2); }},
      {"token 259: a byte token",
       [](Vocabulary& v) { v.set_types(259, Vocabulary::BYTE); }},
  };
  for (const auto& c : cases) {
    Vocabulary vocabulary = SpmVocabulary();
    c.spoil(vocabulary);
    const auto status = Tokenizer::Create(vocabulary).status();
    EXPECT_FALSE(status.ok()) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
  for (const char* merge : {"", "ab", " ", "a ", " b"}) {
    Vocabulary vocabulary = BpeVocabulary("gpt-2");
    vocabulary.add_merges(merge);
    EXPECT_THAT(std::string(Tokenizer::Create(vocabulary).status().message()),
                HasSubstr("merge 14"))
        << merge;
  }
  EXPECT_THAT(
      std::string(
          Tokenizer::Create(BpeVocabulary("klingon")).status().message()),
      HasSubstr("'klingon'"));
}

TEST(Tokenizer, TakesDefaultsWhereTheFileIsSilent) {
  EXPECT_TRUE(MakeTokenizer(SpmVocabulary())->add_bos());
  EXPECT_FALSE(MakeTokenizer(BpeVocabulary("gpt-2"))->add_bos());
  EXPECT_TRUE(MakeTokenizer(BpeVocabulary("llama-bpe"))->add_bos());
  Vocabulary vocabulary = SpmVocabulary();
  vocabulary.set_bos(-1);
  EXPECT_FALSE(MakeTokenizer(vocabulary)->add_bos());
  vocabulary = SpmVocabulary();
  vocabulary.set_add_bos(false);
  vocabulary.set_add_eos(true);
  EXPECT_THAT(Encode(*MakeTokenizer(vocabulary), "in", {}),
              ElementsAre(259, 297, 2));
}

TEST(Tokenizer, FindsFillTokensByTheirNames) {
  EXPECT_EQ(MakeTokenizer(SpmVocabulary())->fill_middle(), -1);
  Vocabulary vocabulary = SpmVocabulary();
  const int first = vocabulary.tokens_size();
  for (const char* name :
       {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}) {
    vocabulary.add_tokens(name);
    vocabulary.add_types(Vocabulary::CONTROL);
    vocabulary.add_scores(0);
  }
  vocabulary.set_fill_suffix(5);  // the file goes before
  const auto tokenizer = MakeTokenizer(vocabulary);
  EXPECT_EQ(tokenizer->fill_prefix(), first);
  EXPECT_EQ(tokenizer->fill_suffix(), 5);
  EXPECT_EQ(tokenizer->fill_middle(), first + 2);
  vocabulary.set_fill_suffix(first + 3);
  EXPECT_FALSE(Tokenizer::Create(vocabulary).ok());
}

TEST(Tokenizer, TellsTypesWhereTheFileHasNone) {
  Vocabulary vocabulary = SpmVocabulary();
  vocabulary.clear_types();
  const auto tokenizer = MakeTokenizer(vocabulary);
  EXPECT_THAT(Encode(*tokenizer, "<s>in\n", {}), ElementsAre(1, 259, 297, 13));
  EXPECT_EQ(*tokenizer->Decode({1, 259, 297, 13}, {}), "in\n");
}

TEST(Tokenizer, PutsNoSecondBosAndSaysSo) {
  const auto tokenizer = MakeTokenizer(SpmVocabulary());
  bool bos_in_text = false;
  EXPECT_THAT(*tokenizer->Encode("<s>hello", {}, &bos_in_text),
              ElementsAre(1, 286, 264, 290));
  EXPECT_TRUE(bos_in_text);
  EXPECT_THAT(*tokenizer->Encode("in", {}, &bos_in_text),
              ElementsAre(1, 259, 297));
  EXPECT_FALSE(bos_in_text);
  // Asked for no BOS, there is nothing to say.
  EXPECT_THAT(*tokenizer->Encode("<s>in", {false, true}, &bos_in_text),
              ElementsAre(1, 259, 297));
  EXPECT_FALSE(bos_in_text);
}

TEST(Tokenizer, TextThatLooksLikeAControlTokenStaysTextIfAsked) {
  const auto tokenizer = MakeTokenizer(BpeVocabulary("gpt-2"));
  const EncodeOptions text_only = {false, false};
  EXPECT_THAT(Encode(*tokenizer, "a<|end|>", {false, true}),
              ElementsAre('a', 272));
  EXPECT_THAT(Encode(*tokenizer, "<|end|>", text_only),
              ElementsAre('<', '|', 'e', 'n', 'd', '|', '>'));
  // User-defined tokens are part of the text's writing, whoever wrote it.
  EXPECT_THAT(Encode(*tokenizer, "a<|user|>b", text_only),
              ElementsAre('a', 273, 'b'));
}

TEST(Tokenizer, DecodesWithAndWithoutSpecialTokens) {
  const auto tokenizer = MakeTokenizer(BpeVocabulary("gpt-2"));
  const std::vector<int32_t> ids = {271, 'a', 273, 'b', 272};
  EXPECT_EQ(*tokenizer->Decode(ids, {}), "a<|user|>b");
  EXPECT_EQ(*tokenizer->Decode(ids, {/*skip_special=*/false}),
            "<|begin|>a<|user|>b<|end|>");
}

TEST(Tokenizer, DropsThePrefixSpaceOnlyWhereEncodePutIt) {
  const auto tokenizer = MakeTokenizer(SpmVocabulary());
  EXPECT_EQ(*tokenizer->Decode({1, 286, 264, 290}, {}), "hello");
  EXPECT_EQ(*tokenizer->Decode({286, 264, 290, 286, 264}, {}), "hello he");
  EXPECT_EQ(*tokenizer->Decode({259, 286, 264}, {}), " he");
  EXPECT_EQ(*tokenizer->Decode({286, 264, 2, 286, 264}, {false}), "he</s>he");
  DecodeOptions continues;
  continues.continues_text = true;
  EXPECT_EQ(*tokenizer->Decode({286, 264}, continues), " he");
}

TEST(Tokenizer, RefusesIdsOutOfRange) {
  const auto tokenizer = MakeTokenizer(SpmVocabulary());
  for (const int32_t id : {-1, 300, std::numeric_limits<int32_t>::min(),
                           std::numeric_limits<int32_t>::max()}) {
    EXPECT_FALSE(tokenizer->InRange(id));
    EXPECT_THAT(std::string(tokenizer->Decode({5, id}, {}).status().message()),
                HasSubstr(std::to_string(id)));
  }
}

TEST(Tokenizer, KnowsWhatEndsAGeneration) {
  Vocabulary vocabulary = BpeVocabulary("gpt-2");
  vocabulary.set_end_of_turn(271);
  AddToken(vocabulary, "<|im_end|>", Vocabulary::USER_DEFINED);
  AddToken(vocabulary, "<|eot_id|>", Vocabulary::NORMAL);
  vocabulary.clear_scores();
  const auto tokenizer = MakeTokenizer(vocabulary);
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(272));  // EOS
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(271));  // end of turn
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(274));  // known by its text
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(275));  // whatever its type
  EXPECT_TRUE(tokenizer->IsSpecial(275));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(273));
}

TEST(Tokenizer, KnowsTheEndOfTurnByItsName) {
  Vocabulary vocabulary = BpeVocabulary("gpt-2");
  vocabulary.set_end_of_turn(-1);
  AddToken(vocabulary, "<|endoftext|>", Vocabulary::CONTROL);
  AddToken(vocabulary, "<|im_end|>", Vocabulary::CONTROL);
  AddToken(vocabulary, "<|file_sep|>", Vocabulary::CONTROL);
  AddToken(vocabulary, "<|file_sep|>s", Vocabulary::CONTROL);
  AddToken(vocabulary, "<|message|>", Vocabulary::CONTROL);
  vocabulary.add_ends(278);
  vocabulary.clear_scores();
  const auto tokenizer = MakeTokenizer(vocabulary);
  EXPECT_EQ(tokenizer->end_of_turn(), 275);
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(274));
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(275));
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(276));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(277));
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(278));  // as the file says
}

// In the vocabulary of gpt-oss a message ends with it, not the answer.
TEST(Tokenizer, AnEndOfAMessageIsNoneWhereAnswersEndOtherwise) {
  Vocabulary vocabulary = BpeVocabulary("gpt-2");  // <|end|> is 272
  vocabulary.set_eos(-1);
  AddToken(vocabulary, "<|return|>", Vocabulary::CONTROL);
  vocabulary.clear_scores();
  EXPECT_TRUE(MakeTokenizer(vocabulary)->IsEndOfGeneration(272));
  AddToken(vocabulary, "<|call|>", Vocabulary::CONTROL);
  vocabulary.clear_scores();
  const auto tokenizer = MakeTokenizer(vocabulary);
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(272));
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(274));
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(275));
  EXPECT_EQ(tokenizer->end_of_turn(), 272);
}

TEST(Tokenizer, TellsPiecesAndBytes) {
  const auto spm = MakeTokenizer(SpmVocabulary());
  EXPECT_EQ(spm->Piece(286), "▁h");
  EXPECT_EQ(spm->TokenToBytes(286), " h");
  EXPECT_EQ(spm->TokenToBytes(3 + 0xFF), "\xFF");
  EXPECT_EQ(spm->TokenToBytes(1), "<s>");
  const auto bpe = MakeTokenizer(BpeVocabulary("gpt-2"));
  EXPECT_EQ(bpe->Piece(264), "Ġh");
  EXPECT_EQ(bpe->TokenToBytes(264), " h");
  EXPECT_EQ(bpe->TokenToBytes(273), "<|user|>");
  EXPECT_GT(bpe->MemoryBytes(), 274 * sizeof(std::string));
}

// As Phi-3's vocabulary has it: added tokens take the white space behind them.
TEST(TokenizerPhi3, AddedTokensTakeTheSpaceBehindThem) {
  Vocabulary vocabulary = SpmVocabulary();
  vocabulary.set_add_space_prefix(false);
  AddToken(vocabulary, "<|endoftext|>", Vocabulary::CONTROL);
  EncodeOptions options;
  options.add_special = false;
  options.parse_special = true;
  // Without the token that gives it away, space is text.
  const auto other = MakeTokenizer(vocabulary);
  const std::vector<int32_t> with_space =
      Encode(*other, "</s> \n hello", options);
  EXPECT_GT(with_space.size(), 2u);

  AddToken(vocabulary, "<|assistant|>", Vocabulary::CONTROL);
  const auto tokenizer = MakeTokenizer(vocabulary);
  const int32_t hello = Encode(*tokenizer, "hello", options)[0];
  EXPECT_THAT(Encode(*tokenizer, "<|assistant|> \n hello</s>  <|assistant|>\n",
                     options),
              ElementsAre(301, hello, 2, 301));
  EXPECT_EQ(Encode(*tokenizer, "<|endoftext|> hello", options),
            Encode(*other, "<|endoftext|> hello", options));
  options.parse_special = false;
  EXPECT_EQ(Encode(*tokenizer, "</s> hello", options),
            Encode(*other, "</s> hello", options));
}

// As Gemma's has it: no space in front, and tokens for runs of spaces and
// lines.
TEST(TokenizerGemma, KeepsTheBeginningAndRunsOfSpace) {
  Vocabulary vocabulary = SpmVocabulary();
  vocabulary.set_add_space_prefix(false);
  AddToken(vocabulary, "  ", Vocabulary::USER_DEFINED);
  AddToken(vocabulary, "\n\n", Vocabulary::USER_DEFINED);
  AddToken(vocabulary, "<end_of_turn>", Vocabulary::CONTROL);
  const auto tokenizer = MakeTokenizer(vocabulary);
  EncodeOptions options;
  options.add_special = true;
  options.parse_special = true;
  const auto hello = Encode(*tokenizer, "hello", options);
  ASSERT_EQ(hello.size(), 2u);
  EXPECT_EQ(tokenizer->Piece(hello[1]), "hello");
  EXPECT_THAT(Encode(*tokenizer, "hello\n\n  hello<end_of_turn>", options),
              ElementsAre(1, hello[1], 301, 300, hello[1], 302));
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(302));
  EXPECT_EQ(*tokenizer->Decode({1, hello[1], 301, 300, hello[1]}, {}),
            "hello\n\n  hello");
}

TEST(TokenizerEncode, EndsWhenNobodyWantsTheIdsAnyMore) {
  for (const Vocabulary& vocabulary :
       {SpmVocabulary(), BpeVocabulary("gpt-2")}) {
    const auto tokenizer = Tokenizer::Create(vocabulary);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    // Many words, and one that is long.
    std::string words;
    for (int i = 0; i < 50000; ++i) words += i % 2 == 0 ? "ab " : "ba ";
    for (const std::string& text : {words, std::string(100000, 'a')}) {
      const auto plain = (*tokenizer)->Encode(text, {});
      ASSERT_TRUE(plain.ok()) << plain.status();
      int asked = 0;
      EncodeOptions options;
      options.unwanted = [&] {
        ++asked;
        return false;
      };
      EXPECT_EQ(*(*tokenizer)->Encode(text, options), *plain);
      EXPECT_GT(asked, 5);
      asked = 0;
      options.unwanted = [&] { return ++asked == 3; };
      EXPECT_EQ((*tokenizer)->Encode(text, options).status().code(),
                absl::StatusCode::kCancelled);
      EXPECT_EQ(asked, 3);
    }
  }
}

}  // namespace
}  // namespace weft
