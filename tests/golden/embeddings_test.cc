// Models for vectors and scores against reference data: the vectors of tokens,
// of texts, and scores; texts to ids by the vocabularies that come with them;
// and the promise that bits depend on nothing but the text.
//
// Where the published model and the engine that converts its files read a
// tensor differently, the reference is the published model's.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/gguf.h"
#include "loaders/vocabulary.h"
#include "passes/pipeline.h"
#include "runtime/api/engine.h"
#include "runtime/api/ranking.h"
#include "runtime/api/scheduler.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/made_up_model.h"
#include "text/tokenizer.h"

namespace weft {
namespace {

using Tokens = std::vector<int32_t>;
using ::testing::HasSubstr;

constexpr char kFolder[] = "tests/data/golden/embeddings/";

nlohmann::json Cases() { return ReadCases(kFolder); }

std::unique_ptr<Engine> Load(const std::string& file,
                             std::optional<ModelOutput> gives,
                             EngineOptions options = {}) {
  options.model.graph.kv_type = DType::kF32;
  options.model.graph.output = gives;
  if (options.threads == 0) options.threads = 2;
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Load(kFolder + file, options);
  EXPECT_TRUE(engine.ok()) << file << ": " << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

std::vector<float> Hidden(Engine& engine, const Tokens& tokens,
                          int64_t chunk = 0) {
  std::vector<float> result;
  const absl::Status status = engine.Hidden(
      tokens,
      [&](int64_t, absl::Span<const float> row) {
        result.insert(result.end(), row.begin(), row.end());
        return absl::OkStatus();
      },
      chunk);
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

std::vector<float> OfText(Engine& engine, const Tokens& tokens,
                          int64_t chunk = 0) {
  const absl::StatusOr<std::vector<float>> result = engine.Embed(tokens, chunk);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or(std::vector<float>());
}

double Nmse(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  if (a.size() != b.size()) return 1;
  ErrorSums sums;
  sums.Add(a, b);
  return sums.nmse();
}

struct Model {
  std::string name;
  nlohmann::json data;
  std::string file() const { return data["file"]; }
  nlohmann::json sequence() const { return data["sequences"][0]; }
  Tokens tokens() const { return sequence()["tokens"]; }
};

std::vector<Model> Models() {
  std::vector<Model> models;
  const nlohmann::json cases = Cases();
  for (const auto& [name, data] : cases["models"].items()) {
    models.push_back({name, data});
  }
  return models;
}

class EmbeddingModelTest : public ::testing::TestWithParam<Model> {};

TEST_P(EmbeddingModelTest, VectorsAndScoresAreThoseOfTheReference) {
  const Model& model = GetParam();
  const nlohmann::json sequence = model.sequence();
  for (Isa isa : {DetectIsa(), Isa::kRef}) {
    EngineOptions options;
    options.model.compile.isa = isa;
    const auto hidden = Load(model.file(), ModelOutput::kHidden, options);
    ASSERT_NE(hidden, nullptr);
    EXPECT_LT(Nmse(Hidden(*hidden, model.tokens()),
                   ReadFloats(kFolder + sequence["hidden"].get<std::string>())),
              1e-10)
        << Name(isa);
    const bool ranks = sequence.contains("scores");
    const auto text =
        Load(model.file(),
             ranks ? ModelOutput::kScores : ModelOutput::kEmbedding, options);
    ASSERT_NE(text, nullptr);
    EXPECT_LT(Nmse(OfText(*text, model.tokens()),
                   ranks ? sequence["scores"].get<std::vector<float>>()
                         : ReadFloats(kFolder +
                                      sequence["pooled"].get<std::string>())),
              1e-10)
        << Name(isa);
  }
}

TEST_P(EmbeddingModelTest, BitsDependOnNeitherChunksNorThreadsNorFusions) {
  const Model& model = GetParam();
  const auto engine = Load(model.file(), std::nullopt);
  ASSERT_NE(engine, nullptr);
  const std::vector<float> want = OfText(*engine, model.tokens());
  for (const int64_t chunk : {1, 7}) {
    EXPECT_TRUE(SameBits(want, OfText(*engine, model.tokens(), chunk)))
        << chunk;
  }
  EngineOptions options;
  options.threads = 1;
  for (const PassEntry& pass : Pipeline()) {
    if (pass.tolerance == 0) {
      options.model.compile.disabled_passes.insert(pass.name);
    }
  }
  const auto plain = Load(model.file(), std::nullopt, options);
  ASSERT_NE(plain, nullptr);
  EXPECT_TRUE(SameBits(want, OfText(*plain, model.tokens())));
}

TEST_P(EmbeddingModelTest, PassesAndKernelsAgreeWithReferenceFunctions) {
  ExpectReferenceResults(kFolder + GetParam().file());
}

// Texts that run beside others have the vectors that they have alone.
TEST_P(EmbeddingModelTest, TextsInOneStepDoNotSeeEachOther) {
  const Model& model = GetParam();
  const auto engine = Load(model.file(), std::nullopt);
  EngineOptions options;
  options.slots = 4;
  auto batched = Load(model.file(), std::nullopt, options);
  ASSERT_TRUE(engine != nullptr && batched != nullptr);
  auto scheduler = Scheduler::Create(std::move(batched), {});
  ASSERT_TRUE(scheduler.ok()) << scheduler.status();
  std::vector<std::vector<float>> given(5);
  std::vector<Tokens> texts;
  for (size_t i = 0; i < given.size(); ++i) {
    texts.push_back(model.tokens());
    texts[i].resize(texts[i].size() - 6 * i);
    texts[i].back() = model.tokens().back();
    Request request;
    request.prompt_tokens = texts[i];
    request.embed = true;
    const auto id =
        (*scheduler)->Submit(std::move(request), [&, i](const Event& event) {
          if (event.finished) given[i] = event.embedding;
        });
    ASSERT_TRUE(id.ok()) << id.status();
  }
  (*scheduler)->Drain(absl::InfiniteDuration());
  for (size_t i = 0; i < given.size(); ++i) {
    EXPECT_TRUE(SameBits(given[i], OfText(*engine, texts[i]))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EmbeddingModelTest, ::testing::ValuesIn(Models()),
                         [](const ::testing::TestParamInfo<Model>& info) {
                           std::string name = info.param.name;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

TEST(EmbeddingModelsTest, GiveWhatTheyAreFor) {
  const std::pair<const char*, ModelOutput> kModels[] = {
      {"qwen3-embedding.gguf", ModelOutput::kHidden},
      {"qwen3-reranker.gguf", ModelOutput::kScores},
      {"bert-unigram.gguf", ModelOutput::kHidden},
      {"bert-classifier.gguf", ModelOutput::kScores},
      {"gemma-embedding.gguf", ModelOutput::kEmbedding},
  };
  for (const auto& [file, gives] : kModels) {
    const auto engine = Load(file, std::nullopt);
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(engine->plan().model.gives, gives) << file;
  }
  EXPECT_THAT(Load("bert-classifier.gguf", std::nullopt)->plan().model.labels,
              ::testing::ElementsAre("no", "maybe", "yes"));
}

TEST(EmbeddingModelsTest, WhatAModelDoesNotGiveIsRefused) {
  const auto error = [](const char* file, ModelOutput gives) {
    EngineOptions options;
    options.model.graph.output = gives;
    return std::string(
        Engine::Load(absl::StrCat(kFolder, file), options).status().message());
  };
  EXPECT_THAT(error("bert-unigram.gguf", ModelOutput::kLogits),
              HasSubstr("it is an encoder"));
  EXPECT_THAT(error("qwen3-embedding.gguf", ModelOutput::kScores),
              HasSubstr("no head that ranks"));
  EXPECT_THAT(error("bert-reranker.gguf", ModelOutput::kEmbedding),
              HasSubstr("ask for scores"));
}

// A decoder for vectors still has logits.
TEST(EmbeddingModelsTest, ADecoderHasLogitsWhereTheyAreAskedFor) {
  const auto engine = Load("qwen3-embedding.gguf", ModelOutput::kLogits);
  ASSERT_NE(engine, nullptr);
  EXPECT_TRUE(engine->plan().model.generates());
  const auto vectors = Load("qwen3-embedding.gguf", std::nullopt);
  EXPECT_THAT(std::string(CheckGenerates(vectors->plan()).message()),
              HasSubstr("made for vectors"));
}

std::unique_ptr<const Tokenizer> TokenizerOf(const std::string& file) {
  const auto model = GgufFile::Open(kFolder + file);
  EXPECT_TRUE(model.ok()) << model.status();
  auto vocabulary = ReadVocabulary(*model, {});
  EXPECT_TRUE(vocabulary.ok()) << vocabulary.status();
  auto tokenizer = Tokenizer::Create(*std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

std::string TextOf(const nlohmann::json& texts) {
  if (texts.contains("text")) return texts["text"];
  std::string text;
  for (const int byte : texts["bytes"]) text.push_back(static_cast<char>(byte));
  return text;
}

TEST(EmbeddingVocabulariesTest, IdsAreThoseOfSentencePiece) {
  int texts = 0;
  const nlohmann::json cases = Cases();
  for (const auto& [name, vocabulary] : cases["tokenize"].items()) {
    const auto tokenizer = TokenizerOf(vocabulary["model"]);
    ASSERT_NE(tokenizer, nullptr);
    EncodeOptions options;
    options.parse_special = false;
    for (const nlohmann::json& one : vocabulary["cases"]) {
      const std::string text = TextOf(one);
      const auto ids = tokenizer->Encode(text, options);
      ASSERT_TRUE(ids.ok()) << ids.status();
      EXPECT_EQ(*ids, one["ids"].get<Tokens>()) << name << ": " << text;
      ++texts;
    }
  }
  EXPECT_GE(texts, 240);
}

TEST(RankingTest, PairsAreReadAsModelsWereTrained) {
  int pairs = 0;
  const nlohmann::json cases = Cases();
  for (const auto& [name, vocabulary] : cases["tokenize"].items()) {
    if (!vocabulary.contains("pairs")) continue;
    const auto engine = Load(vocabulary["model"], std::nullopt);
    ASSERT_NE(engine, nullptr);
    for (const nlohmann::json& pair : vocabulary["pairs"]) {
      const auto ids = PairTokens(engine->plan(), engine->tokenizer(),
                                  pair["query"].get<std::string>(),
                                  pair["document"].get<std::string>());
      ASSERT_TRUE(ids.ok()) << ids.status();
      EXPECT_EQ(*ids, pair["ids"].get<Tokens>()) << name;
      ++pairs;
    }
  }
  EXPECT_GE(pairs, 6);
}

TEST(RankingTest, ATemplateTakesTextsThatAreNoMarkup) {
  const auto engine = Load("qwen3-embedding.gguf", std::nullopt);
  ASSERT_NE(engine, nullptr);
  Plan plan = engine->plan();
  plan.vocabulary.set_pair_template("the {document} of {query}.");
  const Tokenizer& tokenizer = engine->tokenizer();
  EncodeOptions bare;
  bare.add_special = false;
  const std::string end(tokenizer.Piece(tokenizer.eos()));
  const auto ids = PairTokens(plan, tokenizer, "{document}", end);
  ASSERT_TRUE(ids.ok()) << ids.status();
  bare.parse_special = false;
  EXPECT_EQ(*ids, *tokenizer.Encode(
                      absl::StrCat("the ", end, " of {document}."), bare));
}

TEST(RankingTest, ScoresArePerPairAndOnlyOfRankers) {
  const auto engine = Load("bert-reranker.gguf", std::nullopt);
  ASSERT_NE(engine, nullptr);
  const auto scores = Score(*engine, "what is a panda?", "a bear");
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_EQ(scores->size(), 1u);
  EXPECT_NE(*scores, *Score(*engine, "a bear", "what is a panda?"));
  const auto other = Load("bert-unigram.gguf", std::nullopt);
  EXPECT_THAT(std::string(Score(*other, "a", "b").status().message()),
              HasSubstr("ranks nothing"));
}

}  // namespace
}  // namespace weft
