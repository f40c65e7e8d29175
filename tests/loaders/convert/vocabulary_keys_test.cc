// tokenizer.json of every kind, and what its text tells of the pre-tokeniser.
#include "loaders/convert/vocabulary_keys.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/convert/pretokenizer_name.h"
#include "loaders/convert/sentencepiece_model.pb.h"
#include "loaders/vocabulary.h"
#include "tests/loaders/convert/published_folder.h"
#include "tests/loaders/gguf_test_util.h"
#include "text/tokenizer.h"

namespace weft {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kSpace[] = "\xe2\x96\x81";
// As published in tokenizer.json of LLaMA 3, Qwen 2 and GPT-4o.
constexpr char kLlama3[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kQwen2[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kGpt4o[] =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kTekken[] =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

json ByteLevel(bool uses_expression) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"use_regex", uses_expression}};
}

json Split(const std::string& expression,
           const std::string& behavior = "Isolated", bool invert = false) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", expression}}},
          {"behavior", behavior},
          {"invert", invert}};
}

json Sequence(const std::vector<json>& steps) {
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

json Tokenizer(const json& pre, bool nfc = false, bool whole = false) {
  return {{"pre_tokenizer", pre},
          {"normalizer", nfc ? json{{"type", "NFC"}} : json()},
          {"model", {{"type", "BPE"}, {"ignore_merges", whole}}}};
}

std::string NameOf(const json& tokenizer, const std::string& preferred = "") {
  const auto choice = NamePretokenizer(tokenizer, preferred, "t.json");
  EXPECT_TRUE(choice.ok()) << choice.status();
  if (!choice.ok()) return "";
  EXPECT_TRUE(choice->warnings.empty()) << choice->warnings[0];
  return choice->name;
}

TEST(PretokenizerName, IsFoundByThePublishedExpression) {
  const json after = ByteLevel(false);
  EXPECT_EQ(NameOf(Tokenizer(ByteLevel(true))), "gpt-2");
  EXPECT_EQ(NameOf(Tokenizer(Sequence({Split(kLlama3), after}), false, true)),
            "llama-bpe");
  EXPECT_EQ(NameOf(Tokenizer(Sequence({Split(kLlama3), after})), "glm4"),
            "glm4");
  EXPECT_EQ(
      NameOf(Tokenizer(Sequence({Split(kLlama3, "Removed", true), after}))),
      "dbrx");
  EXPECT_EQ(NameOf(Tokenizer(Sequence({Split(kQwen2), after}), true)), "qwen2");
  EXPECT_EQ(
      NameOf(Tokenizer(Sequence({Split(kQwen2), after}), true), "stablelm2"),
      "stablelm2");
  EXPECT_EQ(NameOf(Tokenizer(Sequence({Split(kGpt4o), after}))), "gpt-4o");
  EXPECT_EQ(NameOf(Tokenizer(Sequence({Split(kTekken), after}), false, true)),
            "tekken");
  const json digits = {{"type", "Digits"}, {"individual_digits", true}};
  EXPECT_EQ(NameOf(Tokenizer(Sequence({digits, ByteLevel(true)})), "smollm"),
            "smollm");
  EXPECT_EQ(NameOf(Tokenizer(Sequence({digits, ByteLevel(true)}), true)),
            "command-r");
}

TEST(PretokenizerName, AnUnknownExpressionIsShown) {
  for (const json& pre :
       {Sequence({Split("[a-z]+"), ByteLevel(false)}),
        Sequence({{{"type", "Punctuation"}}}), Split(kLlama3, "MergedWithNext"),
        ByteLevel(false), json()}) {
    const auto choice = NamePretokenizer(Tokenizer(pre), "", "t.json");
    EXPECT_FALSE(choice.ok()) << pre;
    EXPECT_THAT(std::string(choice.status().message()), HasSubstr("--pre"));
  }
  EXPECT_THAT(
      std::string(NamePretokenizer(Tokenizer(Split("[a-z]+")), "", "t.json")
                      .status()
                      .message()),
      HasSubstr("[a-z]+"));
}

TEST(PretokenizerName, WhatANameDoesNotSayIsAWarning) {
  const auto choice = NamePretokenizer(
      Tokenizer(Sequence({Split(kGpt4o), ByteLevel(false)}), true), "",
      "t.json");
  ASSERT_TRUE(choice.ok()) << choice.status();
  ASSERT_EQ(choice->warnings.size(), 1u);
  EXPECT_THAT(choice->warnings[0], HasSubstr("NFC"));
}

TEST(PretokenizerName, ExpressionsHaveOneSpelling) {
  EXPECT_EQ(PlainExpression("(?i:'s|'t)|x"), "'[sS]|'[tT]|x");
  EXPECT_EQ(PlainExpression("x(?i:'s|'t)?|y"), "x(?:'[sS]|'[tT])?|y");
  EXPECT_EQ(PlainExpression("(?:a|b)|c"), "a|b|c");
  EXPECT_EQ(PlainExpression(R"([(?i:]|\(?i:a)"), R"([(?i:]|\(?i:a)");
  EXPECT_EQ(PlainExpression("(?i:a"), "(?i:a");
  EXPECT_EQ(PlainExpression("(?i:\\d)|a"), "(?i:\\d)|a");
  EXPECT_EQ(PlainExpression("\\"), "\\");
}

class VocabularyKeysTest : public testing::Test {
 protected:
  // What a reader makes of the keys.
  absl::StatusOr<Vocabulary> Convert(int64_t size) {
    source_.path = "t.json";
    // As parsers make numbers.
    for (json* each : {&source_.tokenizer, &source_.tokenizer_config,
                       &source_.generation_config, &config_}) {
      *each = json::parse(each->dump());
    }
    VocabularyRules rules;
    rules.size = size;
    rules.pre = pre_;
    GgufWriter writer;
    warnings_.clear();
    const CheckpointConfig config(config_, "config.json");
    const absl::Status set =
        SetVocabulary(source_, config, rules, &writer, &warnings_);
    if (!set.ok()) return set;
    auto file = WriteAndOpen(writer, "vocabulary.gguf");
    if (!file.ok()) return file.status();
    return ReadVocabulary(*file);
  }

  std::string Message(int64_t size) {
    const auto made = Convert(size);
    EXPECT_FALSE(made.ok());
    return std::string(made.status().message());
  }

  std::vector<int32_t> Encode(const Vocabulary& vocabulary,
                              const std::string& text) {
    const auto tokenizer = Tokenizer::Create(vocabulary);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return (*tokenizer)->Encode(text, {}).value();
  }

  VocabularySource source_{
      json::object(),           "", json::object(), json::object(), "",
      "generation_config.json", {}};
  json config_ = json::object();
  std::string pre_;
  std::vector<std::string> warnings_;
};

TEST_F(VocabularyKeysTest, SentencePieceGetsScoresByTheOrderOfMerges) {
  source_.tokenizer = SentencePieceTokenizer(320);
  config_ = {{"bos_token_id", 1}, {"eos_token_id", 2}};
  const auto made = Convert(320);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->model(), "llama");
  EXPECT_EQ(made->bos(), 1);
  EXPECT_EQ(made->eos(), 2);
  EXPECT_EQ(made->unknown(), 0);
  EXPECT_TRUE(made->add_bos());
  EXPECT_FALSE(made->add_eos());
  EXPECT_TRUE(made->add_space_prefix());
  EXPECT_EQ(made->tokens(259), absl::StrCat(kSpace, "a"));
  EXPECT_EQ(made->scores(259), 0.0f);
  EXPECT_EQ(made->scores(260), -1.0f);
  EXPECT_EQ(made->types(0), Vocabulary::UNKNOWN);
  EXPECT_EQ(made->types(1), Vocabulary::CONTROL);
  EXPECT_EQ(made->types(3), Vocabulary::BYTE);
  EXPECT_EQ(made->types(319), Vocabulary::UNUSED);
  EXPECT_EQ(made->tokens(319), "[PAD319]");
  // "_a" before "ab": 260 is "_ab", 261 "ab", 264 "b"; '!' has only its byte.
  EXPECT_THAT(Encode(*made, "ab"), ElementsAre(1, 260));
  EXPECT_THAT(Encode(*made, "aab!"), ElementsAre(1, 259, 261, 3 + '!'));
  // The other form of merges says the same.
  for (json& merge : source_.tokenizer["model"]["merges"]) {
    const std::vector<std::string> both =
        absl::StrSplit(merge.get<std::string>(), ' ');
    merge = both;
  }
  const auto again = Convert(320);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->SerializeAsString(), made->SerializeAsString());
}

TEST_F(VocabularyKeysTest, GemmaHasNoSpaceBeforeTexts) {
  source_.tokenizer = SentencePieceTokenizer(320);
  source_.tokenizer["normalizer"] = {
      {"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}};
  source_.tokenizer["pre_tokenizer"] = {{"type", "Split"},
                                        {"pattern", {{"String", " "}}},
                                        {"behavior", "MergedWithPrevious"},
                                        {"invert", false}};
  auto made = Convert(320);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(made->add_space_prefix());
  source_.tokenizer["normalizer"] = nullptr;
  source_.tokenizer["pre_tokenizer"] = {{"type", "Metaspace"},
                                        {"replacement", kSpace},
                                        {"prepend_scheme", "first"}};
  made = Convert(320);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->add_space_prefix());
}

json SmallByteLevel() {
  return {{"added_tokens",
           {{{"id", 6}, {"content", "<|end|>"}, {"special", false}},
            {{"id", 7}, {"content", "<think>"}, {"special", false}}}},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer", Sequence({Split(kQwen2), ByteLevel(false)})},
          {"post_processor", ByteLevel(false)},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"},
            {"vocab",
             {{"a", 0},
              {"b", 1},
              {"\xc4\xa0", 2},
              {"ab", 3},
              {"\xc4\xa0"
               "ab",
               4},
              {"!", 5}}},
            {"merges", {"a b", "\xc4\xa0 ab"}}}}};
}

TEST_F(VocabularyKeysTest, ByteLevelKeepsMergesAndAddedTokens) {
  source_.tokenizer = SmallByteLevel();
  source_.tokenizer_config = {{"eos_token", "<|end|>"}, {"bos_token", nullptr}};
  source_.generation_config = {{"eos_token_id", {6, 5}}};
  const auto made = Convert(9);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->model(), "gpt2");
  EXPECT_EQ(made->pre(), "qwen2");
  EXPECT_EQ(made->merges(1), "\xc4\xa0 ab");
  EXPECT_EQ(made->types(6), Vocabulary::CONTROL);
  EXPECT_EQ(made->types(7), Vocabulary::USER_DEFINED);
  EXPECT_EQ(made->types(8), Vocabulary::UNUSED);
  EXPECT_EQ(made->eos(), 6);
  EXPECT_EQ(made->bos(), -1);
  EXPECT_THAT(made->ends(), ElementsAre(6, 5));
  EXPECT_THAT(Encode(*made, "ab ab<think>"), ElementsAre(3, 4, 7));
  pre_ = "llama-bpe";
  EXPECT_EQ(Convert(9)->pre(), "llama-bpe");
}

TEST_F(VocabularyKeysTest, SeveralTokensBeforeATextAreLeftOutWithAWarning) {
  source_.tokenizer = SmallByteLevel();
  source_.tokenizer["post_processor"] = {{"type", "TemplateProcessing"},
                                         {"single",
                                          {{{"SpecialToken", {{"id", "a"}}}},
                                           {{"SpecialToken", {{"id", "b"}}}},
                                           {{"Sequence", {{"id", "A"}}}}}}};
  const auto made = Convert(9);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(made->add_bos());
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(warnings_[0], HasSubstr("post_processor"));
}

TEST_F(VocabularyKeysTest, TokensWithoutARowAreLeftOutWithAWarning) {
  source_.tokenizer = SmallByteLevel();
  const auto made = Convert(7);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->tokens_size(), 7);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(warnings_[0], HasSubstr("1 token is left out"));
}

TEST_F(VocabularyKeysTest, WordPieceMarksWhatBeginsAWord) {
  const auto template_of = [](const char* first, const char* last) {
    return json{{"type", "TemplateProcessing"},
                {"single",
                 {{{"SpecialToken", {{"id", first}}}},
                  {{"Sequence", {{"id", "A"}}}},
                  {{"SpecialToken", {{"id", last}}}}}}};
  };
  source_.tokenizer = {{"added_tokens",
                        {{{"id", 0}, {"content", "[PAD]"}, {"special", true}},
                         {{"id", 1}, {"content", "[UNK]"}, {"special", true}},
                         {{"id", 2}, {"content", "[CLS]"}, {"special", true}},
                         {{"id", 3}, {"content", "[SEP]"}, {"special", true}}}},
                       {"normalizer",
                        {{"type", "BertNormalizer"},
                         {"clean_text", true},
                         {"handle_chinese_chars", true},
                         {"strip_accents", nullptr},
                         {"lowercase", true}}},
                       {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                       {"post_processor", template_of("[CLS]", "[SEP]")},
                       {"model",
                        {{"type", "WordPiece"},
                         {"unk_token", "[UNK]"},
                         {"continuing_subword_prefix", "##"},
                         {"vocab",
                          {{"[PAD]", 0},
                           {"[UNK]", 1},
                           {"[CLS]", 2},
                           {"[SEP]", 3},
                           {"a", 4},
                           {"##b", 5}}}}}};
  source_.tokenizer_config = {{"cls_token", "[CLS]"}, {"sep_token", "[SEP]"}};
  const auto made = Convert(6);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->model(), "bert");
  EXPECT_EQ(made->tokens(4), absl::StrCat(kSpace, "a"));
  EXPECT_EQ(made->tokens(5), "b");
  EXPECT_TRUE(made->lowercase());
  EXPECT_THAT(Encode(*made, "AB c"), ElementsAre(2, 4, 5, 1, 3));
  const json good = source_.tokenizer;
  source_.tokenizer["normalizer"]["handle_chinese_chars"] = false;
  EXPECT_THAT(Message(6), HasSubstr("handle_chinese_chars"));
  source_.tokenizer = good;
  source_.tokenizer["model"]["continuing_subword_prefix"] = "@@";
  EXPECT_THAT(Message(6), HasSubstr("continuing_subword_prefix"));
  source_.tokenizer = good;
  source_.tokenizer["post_processor"] = nullptr;
  EXPECT_THAT(Message(6), HasSubstr("[CLS]"));
}

TEST_F(VocabularyKeysTest, UnigramKeepsItsScores) {
  source_.tokenizer = {
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers",
         {{{"type", "Precompiled"},
           {"precompiled_charsmap", absl::Base64Escape("")}},
          {{"type", "Replace"},
           {"pattern", {{"Regex", " {2,}"}}},
           {"content", " "}}}}}},
      {"pre_tokenizer", Sequence({{{"type", "WhitespaceSplit"}},
                                  {{"type", "Metaspace"},
                                   {"replacement", kSpace},
                                   {"add_prefix_space", true}}})},
      {"added_tokens",
       {{{"id", 0}, {"content", "<s>"}, {"special", true}},
        {{"id", 1}, {"content", "</s>"}, {"special", true}}}},
      {"post_processor",
       {{"type", "RobertaProcessing"},
        {"cls", {"<s>", 0}},
        {"sep", {"</s>", 1}}}},
      {"model",
       {{"type", "Unigram"}, {"unk_id", 2}, {"vocab", json::array()}}}};
  const std::pair<std::string, double> kPieces[] = {
      {"<s>", 0.0},   {"</s>", 0.0},
      {"<unk>", 0.0}, {absl::StrCat(kSpace, "a"), -1.5},
      {"a", -2.0},    {kSpace, -3.0}};
  for (const auto& [text, score] : kPieces) {
    source_.tokenizer["model"]["vocab"].push_back(json::array({text, score}));
  }
  source_.tokenizer_config = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  const auto made = Convert(6);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->model(), "t5");
  EXPECT_EQ(made->scores(3), -1.5f);
  EXPECT_EQ(made->types(2), Vocabulary::UNKNOWN);
  EXPECT_TRUE(made->remove_extra_whitespaces());
  EXPECT_THAT(Encode(*made, "a  a"), ElementsAre(0, 3, 3, 1));
  source_.tokenizer["model"]["vocab"][3] = {1, 2};
  EXPECT_THAT(Message(6), HasSubstr("piece 3"));
}

// Of older folders: the pieces have their scores.
class SentencePieceFolder : public VocabularyKeysTest {
 protected:
  SentencePieceFolder()
      : folder_(testing::TempDir() + "/" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    const auto add = [this](
                         const std::string& text, float score,
                         sentencepiece::ModelProto::SentencePiece::Type type) {
      auto* piece = model_.add_pieces();
      piece->set_piece(text);
      piece->set_score(score);
      piece->set_type(type);
    };
    using Piece = sentencepiece::ModelProto::SentencePiece;
    add("<unk>", 0, Piece::UNKNOWN);
    add("<s>", 0, Piece::CONTROL);
    add("</s>", 0, Piece::CONTROL);
    for (int byte = 0; byte < 256; ++byte) {
      add(absl::StrFormat("<0x%02X>", byte), 0, Piece::BYTE);
    }
    add(kSpace, -3, Piece::NORMAL);                     // 259
    add("a", -4, Piece::NORMAL);                        // 260
    add("b", -5, Piece::NORMAL);                        // 261
    add("ab", -1, Piece::NORMAL);                       // 262
    add(absl::StrCat(kSpace, "a"), -2, Piece::NORMAL);  // 263
    model_.mutable_trainer_spec()->set_model_type(
        sentencepiece::TrainerSpec::BPE);
    model_.mutable_normalizer_spec()->set_remove_extra_whitespaces(false);
  }

  absl::Status Read() {
    Write("tokenizer.model", model_.SerializeAsString());
    auto source = VocabularySource::Read(folder_);
    if (source.ok()) source_ = *std::move(source);
    return source.status();
  }
  void Write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }

  const std::string folder_;
  sentencepiece::ModelProto model_;
};

TEST_F(SentencePieceFolder, KeepsPiecesAndScores) {
  Write("added_tokens.json", R"({"<|user|>": 264, "<more>": 265})");
  Write("tokenizer_config.json",
        R"({"bos_token": "<s>", "eos_token": "</s>", "added_tokens_decoder":
            {"0": {"content": "<unk>", "special": true},
             "265": {"content": "<more>", "special": false}}})");
  ASSERT_TRUE(Read().ok()) << Read();
  const auto made = Convert(267);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->model(), "llama");
  EXPECT_EQ(made->types(0), Vocabulary::UNKNOWN);
  EXPECT_EQ(made->types(1), Vocabulary::CONTROL);
  EXPECT_EQ(made->types(3), Vocabulary::BYTE);
  EXPECT_EQ(made->types(264), Vocabulary::CONTROL);
  EXPECT_EQ(made->types(265), Vocabulary::USER_DEFINED);
  EXPECT_EQ(made->types(266), Vocabulary::UNUSED);
  EXPECT_EQ(made->scores(262), -1);
  EXPECT_EQ(made->bos(), 1);
  EXPECT_EQ(made->eos(), 2);
  EXPECT_TRUE(made->add_bos());
  // "ab" is worth more than a space with an "a".
  EXPECT_THAT(Encode(*made, "ab"), ElementsAre(1, 259, 262));
  EXPECT_THAT(Encode(*made, "a<more>\xc3\xa9"),
              ElementsAre(1, 263, 265, 259, 3 + 0xc3, 3 + 0xa9));
}

TEST_F(SentencePieceFolder, WhatNoReaderDoesIsRefused) {
  const auto refused = [&](const char* why) {
    const absl::Status status = Read();
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_THAT(std::string(status.message()), HasSubstr("tokenizer.model"));
  };
  model_.mutable_trainer_spec()->set_model_type(
      sentencepiece::TrainerSpec::UNIGRAM);
  refused("not BPE");
  model_.mutable_trainer_spec()->set_model_type(
      sentencepiece::TrainerSpec::BPE);
  model_.mutable_normalizer_spec()->set_precompiled_charsmap("x");
  refused("normaliser");
  model_.mutable_normalizer_spec()->clear_precompiled_charsmap();
  model_.mutable_pieces(261)->set_score(
      std::numeric_limits<float>::quiet_NaN());
  refused("piece 261");
  model_.mutable_pieces(261)->set_score(0);
  model_.mutable_pieces(261)->set_piece("\xff");
  refused("piece 261");
  model_.clear_pieces();
  refused("no SentencePiece model");
}

TEST_F(VocabularyKeysTest, ChatTemplatesComeInThreeForms) {
  source_.tokenizer = SmallByteLevel();
  source_.tokenizer_config = {{"chat_template", "one"}};
  EXPECT_EQ(Convert(9)->chat_template(), "one");
  source_.tokenizer_config["chat_template"] = {
      {{"name", "default"}, {"template", "first"}},
      {{"name", "rag"}, {"template", "second"}}};
  EXPECT_THAT(Convert(9)->chat_template(), HasSubstr("first"));
  source_.chat_template = "file";
  EXPECT_EQ(Convert(9)->chat_template(), "file");
  source_.chat_template.clear();
  source_.tokenizer_config["chat_template"] = {{{"name", "a\nb"}}};
  EXPECT_THAT(Message(9), HasSubstr("chat templates"));
}

// Models that end at no token never stop.
TEST_F(VocabularyKeysTest, EndsOfTextsThatAreNoTokensAreRefused) {
  source_.tokenizer = SmallByteLevel();
  source_.tokenizer_config = {{"bos_token", "!"}, {"eos_token", "!"}};
  for (const json& bad :
       {json(-1), json(9), json("!"), json(1.5), json({1, 9}), json(true)}) {
    for (const char* key : {"bos_token_id", "eos_token_id"}) {
      config_ = {{key, bad}};
      EXPECT_THAT(Message(9), HasSubstr(absl::StrCat("config.json: ", key)));
      config_ = json::object();
      source_.generation_config = {{key, bad}};
      EXPECT_THAT(Message(9),
                  HasSubstr(absl::StrCat("generation_config.json: ", key)));
      source_.generation_config = json::object();
    }
  }
  config_ = {{"bos_token_id", nullptr},
             {"eos_token_id", {1, 2}},
             {"pad_token_id", -1}};
  EXPECT_TRUE(Convert(9).ok());
}

TEST_F(VocabularyKeysTest, DamagedTokenizersAreRefused) {
  const json good = SmallByteLevel();
  const std::pair<const char*, json> kBad[] = {
      {"/model", nullptr},
      {"/model/type", "CharBPE"},
      {"/model/vocab", {1, 2}},
      {"/model/vocab/a", "x"},
      {"/model/vocab/a", -1},
      {"/model/vocab/a", 1e20},
      {"/model/vocab/a", 1},
      {"/model/merges", 5},
      {"/model/merges/0", "ab"},
      {"/model/merges/0", "a b a"},
      {"/model/merges/0", "a x"},
      {"/model/merges/0", {"a"}},
      {"/added_tokens", 5},
      {"/added_tokens/0", {{"id", 3}}},
      {"/added_tokens/0/id", -3},
      {"/post_processor", {{"type", "New"}}},
      {"/post_processor", {{"type", "RobertaProcessing"}, {"cls", 1}}},
  };
  for (const auto& [where, value] : kBad) {
    source_.tokenizer = good;
    source_.tokenizer[json::json_pointer(where)] = value;
    source_.tokenizer_config = {{"bos_token", "!"}};
    EXPECT_THAT(Message(9), HasSubstr("t.json")) << where << " " << value;
  }
}

}  // namespace
}  // namespace weft
