// Encoders and mixtures of experts by the commands: vectors, refusals, plans.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tests/e2e/weft.h"

namespace weft {
namespace {

const char kEncoder[] = "tests/data/golden/arch/bert.gguf";
const char kRanker[] = "tests/data/golden/embeddings/bert-classifier.gguf";
const char kExperts[] = "tests/data/golden/arch/qwen2moe.gguf";
constexpr size_t kWidth = 64;

std::vector<float> Floats(const std::string& path) {
  const std::string bytes = ReadFile(path);
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

TEST(Encoder, EvalWritesARowPerTokenAndTheirMean) {
  const std::string hidden = TemporaryPath("hidden.f32");
  const std::string embedding = TemporaryPath("embedding.f32");
  const nlohmann::json json =
      WeftJson({"eval", kEncoder, "--text", "the other", "--hidden", hidden,
                "--embedding", embedding, "--json"});
  EXPECT_EQ(json["tokens"], nlohmann::json({2, 53, 111, 3}));
  const std::vector<float> rows = Floats(hidden);
  const std::vector<float> mean = Floats(embedding);
  ASSERT_EQ(rows.size(), 4 * kWidth);
  ASSERT_EQ(mean.size(), kWidth);
  for (size_t i = 0; i < kWidth; ++i) {
    EXPECT_NEAR(mean[i],
                (rows[i] + rows[kWidth + i] + rows[2 * kWidth + i] +
                 rows[3 * kWidth + i]) /
                    4,
                1e-6);
  }

  const std::string plan = TemporaryPath("encoder.weft");
  WeftOut({"compile", kEncoder, "-o", plan});
  const std::string again = TemporaryPath("again.f32");
  WeftOut({"eval", plan, "--tokens", "2,53,111,3", "--embedding", again});
  EXPECT_EQ(Floats(again), mean);
}

TEST(Encoder, CommandsThatGenerateRefuseIt) {
  const std::string text = TemporaryPath("text.txt");
  WriteTextFile(text, "the other");
  ExpectError(Weft({"run", kEncoder, "-p", "the"}), 1);
  ExpectError(Weft({"perplexity", kEncoder, "-f", text}), 1);
  ExpectError(Weft({"eval", kEncoder, "--text", "the", "--logits", text}), 1);
  std::string tokens = "2";
  for (int i = 0; i < 128; ++i) tokens += ",5";
  ExpectError(Weft({"eval", kEncoder, "--tokens", tokens}), 1);
  const std::string file = TemporaryPath("none.f32");
  for (const char* flag : {"--score", "--embedding"}) {
    ExpectError(
        Weft({"eval", flag == std::string("--score") ? kEncoder : kRanker,
              "--tokens", "1,2", flag, file}),
        1);
  }
  ExpectError(Weft({"eval", kEncoder, "--tokens", "1,2", "--hidden", file,
                    "--logits", file}),
              2);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(Encoder, EvalWritesScoresAndWhatTheyAreOf) {
  const std::string file = TemporaryPath("scores.f32");
  const nlohmann::json json = WeftJson(
      {"eval", kRanker, "--tokens", "2,7,8,3", "--score", file, "--json"});
  EXPECT_EQ(json["labels"], nlohmann::json({"no", "maybe", "yes"}));
  EXPECT_EQ(json["scores"].get<std::vector<float>>(), Floats(file));
  // A plan gives the same.
  const std::string plan = TemporaryPath("ranker.weft");
  WeftOut({"compile", kRanker, "-o", plan});
  const std::string again = TemporaryPath("again.f32");
  WeftOut({"eval", plan, "--tokens", "2,7,8,3", "--score", again});
  EXPECT_EQ(Floats(again), Floats(file));
  ExpectError(Weft({"eval", plan, "--tokens", "2,7,8,3", "--hidden", again}),
              1);
}

// The last token's, where the file does not say.
TEST(Decoder, EvalWritesVectors) {
  const std::string hidden = TemporaryPath("hidden.f32");
  const std::string embedding = TemporaryPath("embedding.f32");
  WeftOut({"eval", kExperts, "--tokens", "1,2,3", "--hidden", hidden,
           "--embedding", embedding});
  const std::vector<float> rows = Floats(hidden), last = Floats(embedding);
  ASSERT_EQ(rows.size(), 3 * last.size());
  EXPECT_EQ(std::vector<float>(rows.end() - last.size(), rows.end()), last);
}

TEST(Encoder, BenchMeasuresWhatThereIs) {
  const nlohmann::json json =
      WeftJson({"bench", kEncoder, "--prompt", "64", "--repeat", "1",
                "--generate", "2", "--json"});
  EXPECT_GT(json["prefill_tokens_per_second"]["median"], 0);
  EXPECT_TRUE(json["decode_tokens_per_second"].is_null());
}

TEST(Encoder, VerifyPasses) {
  for (const char* model : {kEncoder, kExperts}) {
    WeftOut({"verify", model, "--tokens", "12"});
  }
}

TEST(Experts, ProfileCountsTheExpertsUsed) {
  const nlohmann::json json = WeftJson(
      {"profile", kExperts, "--prompt", "4", "--generate", "2", "--json"});
  const nlohmann::json inspected = WeftJson({"inspect", kExperts, "--json"});
  double expert_bytes = 0;
  for (const nlohmann::json& tensor : inspected["tensors"]) {
    const std::string name = tensor["name"];
    if (name.find("_exps.") != std::string::npos) {
      expert_bytes += tensor["bytes"].get<double>();
    }
  }
  double decoded = 0;
  for (const nlohmann::json& phase : json["phases"]) {
    if (phase["name"] != "decode") continue;
    for (const nlohmann::json& row : phase["ops"]) {
      const std::string name = row["name"];
      if (name.find("expert_matmul") != std::string::npos) {
        decoded += row["bytes"].get<double>();
      }
    }
  }
  // Two steps, each with two of four experts, and some rows of activations.
  EXPECT_GT(decoded, expert_bytes);
  EXPECT_LT(decoded, 1.1 * expert_bytes);
}

TEST(Experts, APlanGivesTheSameBits) {
  const std::string plan = TemporaryPath("experts.weft");
  const std::string quantized = TemporaryPath("experts-Q8_0.gguf");
  WeftOut({"quantize", kExperts, quantized, "Q8_0"});
  WeftOut({"compile", quantized, "-o", plan});
  const std::string a = TemporaryPath("a.f32"), b = TemporaryPath("b.f32");
  WeftOut({"eval", quantized, "--tokens", "1,5,9,200", "--logits", a});
  WeftOut(
      {"eval", plan, "--tokens", "1,5,9,200", "--logits", b, "--chunk", "1"});
  EXPECT_EQ(ReadFile(a), ReadFile(b));
  EXPECT_EQ(Floats(a).size(), 4u * 320);
}

}  // namespace
}  // namespace weft
