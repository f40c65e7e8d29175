#include "loaders/synthesize.h"

#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/dtype.h"
#include "gtest/gtest.h"
#include "loaders/gguf.h"
#include "loaders/model_shape.h"
#include "loaders/vocabulary.h"
#include "ops/dequantize.h"
#include "tests/loaders/llama_check.h"
#include "text/tokenizer.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::string TempPath(const std::string& name) {
  return testing::TempDir() + "/" + name;
}

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = TempPath(name);
  std::ofstream(path) << text;
  return path;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

constexpr char kSmall[] = R"({"embedding_length": 256, "block_count": 2,
    "feed_forward_length": 512, "head_count": 8, "head_count_kv": 2,
    "vocabulary_size": 1000, "context_length": 64})";

SynthesizeOptions Small(const std::string& type) {
  SynthesizeOptions options;
  options.shape = WriteFile("small.json", kSmall);
  options.type = type;
  options.seed = 7;
  return options;
}

GgufFile MakeSmall(const SynthesizeOptions& options, const std::string& name) {
  const auto report = SynthesizeModel(options, TempPath(name));
  EXPECT_TRUE(report.ok()) << report.status();
  auto file = GgufFile::Open(TempPath(name));
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

TEST(SynthesizeModel, LoadsBackAsALlamaOfItsShape) {
  for (const char* type : {"Q4_0", "Q4_K_M", "F16"}) {
    const GgufFile file = MakeSmall(Small(type), "loads.gguf");
    const auto config = ReadModelConfig(file);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->embedding_length, 256);
    EXPECT_EQ(config->block_count, 2);
    EXPECT_EQ(config->head_count_kv, 2);
    EXPECT_EQ(config->key_length, 32);
    EXPECT_EQ(config->vocabulary_size, 1000);
    EXPECT_EQ(config->context_length, 64);
    EXPECT_EQ(file.FindTensor("output.weight")->dims,
              (std::vector<int64_t>{256, 1000}));
    const absl::Status status = CheckLlamaTensors(file, *config);
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(SynthesizeModel, ObeysMixAndOverrides) {
  SynthesizeOptions options = Small("Q4_K_M");
  options.tensor_types = {"blk.0.ffn_up=Q8_0"};
  const GgufFile file = MakeSmall(options, "mix.gguf");
  EXPECT_EQ(file.FindTensor("output.weight")->type, DType::kQ6_K);
  EXPECT_EQ(file.FindTensor("token_embd.weight")->type, DType::kQ4_K);
  EXPECT_EQ(file.FindTensor("blk.0.ffn_up.weight")->type, DType::kQ8_0);
  EXPECT_EQ(file.FindTensor("blk.1.ffn_up.weight")->type, DType::kQ4_K);
  EXPECT_EQ(file.FindTensor("blk.1.ffn_norm.weight")->type, DType::kF32);
  EXPECT_EQ(*file.GetUint("general.file_type"), 15u);
}

// Weights must look like weights in every type, blocks in order or not.
TEST(SynthesizeModel, WeightsHaveTheScaleOfTheirRows) {
  for (const char* type : {"Q4_0", "Q2_K", "BF16"}) {
    const GgufFile file = MakeSmall(Small(type), "scale.gguf");
    for (const auto& [name, expected] :
         {std::pair<const char*, double>{"blk.1.attn_q.weight", 1 / 16.0},
          {"blk.1.ffn_down.weight", 1 / std::sqrt(512.0) / 2},
          {"token_embd.weight", 0.02},
          {"blk.0.attn_norm.weight", 1.0}}) {
      const GgufTensor& tensor = *file.FindTensor(name);
      std::vector<float> values(static_cast<size_t>(tensor.elements()));
      DequantizeRow(tensor.type, tensor.data.data(), values.data(),
                    tensor.elements());
      double squares = 0.0;
      for (float value : values) squares += double{value} * value;
      EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())),
                  expected, 0.06 * expected)
          << type << " " << name;
    }
  }
}

TEST(SynthesizeModel, RowsHardlyRepeat) {
  const GgufFile file = MakeSmall(Small("Q4_K"), "rows.gguf");
  const GgufTensor& tensor = *file.FindTensor("blk.0.attn_q.weight");
  std::vector<std::string> rows;
  const size_t bytes = static_cast<size_t>(RowBytes(tensor.type, 256));
  for (size_t at = 0; at < tensor.data.size(); at += bytes) {
    rows.emplace_back(reinterpret_cast<const char*>(&tensor.data[at]), bytes);
  }
  std::sort(rows.begin(), rows.end());
  // One block per row is the worst case: some pool blocks are picked twice.
  const auto end = std::unique(rows.begin(), rows.end());
  EXPECT_GT(end - rows.begin(), 230);
}

TEST(SynthesizeModel, SameSeedSameBytes) {
  SynthesizeOptions options = Small("Q4_0");
  for (const char* name : {"a.gguf", "b.gguf"}) {
    ASSERT_TRUE(SynthesizeModel(options, TempPath(name)).ok());
  }
  EXPECT_EQ(ReadFile(TempPath("a.gguf")), ReadFile(TempPath("b.gguf")));
  options.seed = 8;
  ASSERT_TRUE(SynthesizeModel(options, TempPath("c.gguf")).ok());
  EXPECT_NE(ReadFile(TempPath("a.gguf")), ReadFile(TempPath("c.gguf")));
}

TEST(SynthesizeModel, ReportsFallbacksAndCounts) {
  SynthesizeOptions options = Small("Q4_K");
  options.shape = WriteFile("odd.json", R"({"architecture": "qwen2",
      "embedding_length": 96, "block_count": 1, "feed_forward_length": 256,
      "head_count": 3, "vocabulary_size": 300, "tied_output": true})");
  const auto report = SynthesizeModel(options, TempPath("odd.gguf"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->parameters,
            300 * 96 + 4 * 96 * 96 + 3 * 96 + 3 * 96 * 256 + 3 * 96);
  ASSERT_EQ(report->warnings.size(), 1u);  // of all but ffn_down
  EXPECT_EQ(report->warnings[0],
            "7 tensors (token_embd.weight to blk.0.ffn_up.weight): rows of 96 "
            "are no multiple of the 256 of Q4_K: stored as Q5_0");
  const auto file = GgufFile::Open(TempPath("odd.gguf"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->FindTensor("blk.0.ffn_down.weight")->type, DType::kQ4_K);
  EXPECT_EQ(file->FindTensor("blk.0.attn_k.bias")->type, DType::kF32);
  EXPECT_EQ(file->FindTensor("output.weight"), nullptr);
  EXPECT_EQ(*file->GetString("general.architecture"), "qwen2");
}

TEST(SynthesizeModel, TokenisesAnyText) {
  const GgufFile file = MakeSmall(Small("Q8_0"), "tokens.gguf");
  auto vocabulary = ReadVocabulary(file);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->tokens_size(), 1000);
  const auto tokenizer = Tokenizer::Create(*std::move(vocabulary));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const std::string text = "It is a truth, \xc3\xa9t\xc3\xa9 1813!\n";
  const auto ids = (*tokenizer)->Encode(text, {});
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ((*ids)[0], 1);
  EXPECT_LT(ids->size(), text.size());  // merges happen
  EXPECT_EQ(*(*tokenizer)->Decode(*ids, {}), text);
}

TEST(SynthesizeModel, TheSmallestVocabularyHasNoPieces) {
  SynthesizeOptions options = Small("Q4_0");
  options.shape = WriteFile("bytes.json", R"({"embedding_length": 32,
      "block_count": 1, "feed_forward_length": 32, "head_count": 1,
      "vocabulary_size": 259})");
  const GgufFile file = MakeSmall(options, "bytes.gguf");
  EXPECT_EQ(file.FindValue("tokenizer.ggml.tokens")->count(), 259u);
}

TEST(FindModelShape, KnowsPublishedModels) {
  for (const std::string& name : ModelShapeNames()) {
    const auto shape = FindModelShape(name);
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_EQ(shape->name, name);
  }
  EXPECT_THAT(
      ModelShapeNames(),
      ::testing::IsSupersetOf({"tinyllama-1.1b", "llama-3.2-1b", "llama-3-8b",
                               "qwen2-0.5b", "smollm-135m", "gpt2-124m"}));
}

// Parameters as their publishers count them.
TEST(SynthesizeModel, PublishedShapesHaveTheirNumberOfParameters) {
  const std::pair<const char*, double> millions[] = {
      {"tinyllama-1.1b", 1100},     {"qwen2-0.5b", 494},
      {"qwen3-0.6b", 596},          {"gpt2-124m", 124.4},
      {"gemma-2b", 2506},           {"gemma2-2b", 2614},
      {"gemma3-1b", 1000},          {"phi3-mini", 3821},
      {"stablelm-2-1.6b", 1644},    {"granite-3-2b", 2534},
      {"olmo2-1b", 1485},           {"bert-base", 108.9},
      {"qwen1.5-moe-a2.7b", 14316}, {"qwen3-30b-a3b", 30532},
      {"gpt-oss-20b", 20915},       {"olmoe-1b-7b", 6919},
      {"phi-3.5-moe", 41873},       {"deepseek-v2-lite", 15706},
      {"deepseek-v3", 671026},      {"glm4.5-air", 106852},
      {"gemma4-26b-a4b", 25230},    {"qwen3-next-80b-a3b", 79674},
      {"lfm2-1.2b", 1170},          {"granite-4-h-tiny", 6939},
      {"nemotron-nano-9b", 8888}};
  for (const auto& [name, count] : millions) {
    SynthesizeOptions options;
    options.shape = name;
    options.type = "F16";
    options.hollow = true;
    const auto report = SynthesizeModel(options, TempPath("count.gguf"));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_NEAR(report->parameters / 1e6, count, 0.005 * count) << name;
  }
}

TEST(SynthesizeModel, TakesFewerBlocksOfAShape) {
  SynthesizeOptions options;
  options.shape = "qwen3-30b-a3b";
  options.type = "Q4_K_M";
  options.hollow = true;
  options.blocks = 2;
  const std::string path = TempPath("fewer.gguf");
  ASSERT_TRUE(SynthesizeModel(options, path).ok());
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*file->GetUint("qwen3moe.block_count"), 2u);
  EXPECT_NE(file->FindTensor("blk.1.ffn_down_exps.weight"), nullptr);
  EXPECT_EQ(file->FindTensor("blk.2.ffn_down_exps.weight"), nullptr);
  options.blocks = 49;
  EXPECT_THAT(SynthesizeModel(options, path).status().message(),
              testing::HasSubstr("has 1 to 48"));
}

TEST(SynthesizeModel, WritesKeysAndOptionalTensors) {
  SynthesizeOptions options = Small("F32");
  options.shape = WriteFile("keys.json", R"({"architecture": "phi3",
      "embedding_length": 64, "block_count": 1, "feed_forward_length": 64,
      "head_count": 2, "vocabulary_size": 300, "rope_dimension_count": 16,
      "keys": {"attention.sliding_window": 17, "rope.scaling.attn_factor": 1.5},
      "optional_tensors": ["factors_long.weight", "attn_qkv.bias"]})");
  const GgufFile file = MakeSmall(options, "keys.gguf");
  EXPECT_EQ(*file.GetUint("phi3.attention.sliding_window"), 17u);
  EXPECT_EQ(*file.GetFloat("phi3.rope.scaling.attn_factor"), 1.5f);
  EXPECT_EQ(*file.GetUint("phi3.rope.dimension_count"), 16u);
  ASSERT_NE(file.FindTensor("rope_factors_long.weight"), nullptr);
  EXPECT_EQ(file.FindTensor("rope_factors_long.weight")->dims,
            std::vector<int64_t>{8});
  // The one needs the other.
  EXPECT_NE(file.FindTensor("rope_factors_short.weight"), nullptr);
  EXPECT_EQ(file.FindTensor("blk.0.attn_qkv.bias")->dims,
            std::vector<int64_t>{192});
}

TEST(SynthesizeModel, RefusesArchitecturesThatNobodyKnows) {
  SynthesizeOptions options = Small("F32");
  options.shape = WriteFile("nobody.json", R"({"architecture": "nobody",
      "embedding_length": 64, "block_count": 1, "feed_forward_length": 64,
      "head_count": 2, "vocabulary_size": 300})");
  const auto report = SynthesizeModel(options, TempPath("nobody.gguf"));
  EXPECT_THAT(std::string(report.status().message()),
              ::testing::AllOf(HasSubstr("nobody"), HasSubstr("llama, qwen2")));
}

TEST(FindModelShape, RefusesBadFilesByKey) {
  const std::string head =
      R"({"embedding_length": 64, "block_count": 1, "feed_forward_length": 64,
          "vocabulary_size": 300, )";
  const struct {
    std::string json;
    const char* message;
  } table[] = {
      {"", "not JSON"},
      {"[1]", "no JSON object"},
      {"{}", "embedding_length is 0"},
      {head + R"("head_count": 0})", "head_count is 0"},
      {head + R"("head_count": 2.5})", "head_count: write a whole number"},
      {head + R"("head_count": "2"})", "head_count: write a whole number"},
      {head + R"("head_count": 1e30})", "head_count: write a whole number"},
      {head + R"("head_count": 3})", "divide embedding_length"},
      {head + R"("head_count": 4, "head_count_kv": 3})", "head_count_kv"},
      {head + R"("head_count": 64})", "key_length is 1"},
      {head + R"("head_count": 4, "key_length": 7})", "even"},
      {head + R"("head_count": 4, "tied_output": 1})", "tied_output"},
      {head + R"("head_count": 4, "rope_dimension_count": 18})",
       "rope_dimension_count"},
      {head + R"("head_count": 4, "keys": [1]})", "keys: write an object"},
      {head + R"("head_count": 4, "keys": {"a": "b"}})", "keys: write an"},
      {head + R"("head_count": 4, "keys": {"expert_count": 4}})",
       "expert_used_count is 0"},
      {head +
           R"("head_count": 4, "keys": {"expert_count": 4,
              "expert_used_count": 5}})",
       "expert_used_count is above expert_count"},
      {head + R"("head_count": 4, "keys": {"expert_count": 1e30}})",
       "expert_count is 1e+30"},
      {head + R"("head_count": 4, "optional_tensors": [1]})",
       "optional_tensors: write an array"},
      {head + R"("head_count": 4, "heads": 4})", "a key beside"},
      {head + R"("head_count": 4, "norm_epsilon": -1})", "norm_epsilon"},
      {R"({"embedding_length": 16777216, "block_count": 4096,
           "feed_forward_length": 16777216, "head_count": 4096,
           "vocabulary_size": 16777216})",
       "2^38"},
  };
  for (const auto& row : table) {
    const auto shape = FindModelShape(WriteFile("bad.json", row.json));
    ASSERT_FALSE(shape.ok()) << row.json;
    EXPECT_THAT(std::string(shape.status().message()), HasSubstr(row.message));
  }
  EXPECT_THAT(std::string(FindModelShape("gpt-9").status().message()),
              HasSubstr("tinyllama-1.1b"));
  EXPECT_FALSE(FindModelShape("/no/such.json").ok());
}

}  // namespace
}  // namespace weft
