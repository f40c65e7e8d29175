// Multi-head latent attention as small made-up models: bits that depend on
// nothing but tokens, passes and kernels as their references, both forms in
// which files have the heads' matrices, and a cache of one row per token.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loaders/gguf_writer.h"
#include "loaders/synthesize.h"
#include "runtime/api/engine.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/made_up_model.h"

namespace weft {
namespace {

constexpr int64_t kHeads = 4, kRank = 64, kPlain = 32, kTurned = 32;

// `split`: with attn_k_b and attn_v_b, else attn_kv_b.
std::string Synthesize(const std::string& type, int64_t query_rank,
                       bool split) {
  nlohmann::json shape = {{"architecture", "deepseek2"},
                          {"embedding_length", 128},
                          {"block_count", 2},
                          {"feed_forward_length", 256},
                          {"head_count", kHeads},
                          {"head_count_kv", 1},
                          {"key_length", kRank + kTurned},
                          {"rope_dimension_count", kTurned},
                          {"vocabulary_size", 320},
                          {"context_length", 128},
                          {"keys",
                           {{"attention.q_lora_rank", query_rank},
                            {"attention.kv_lora_rank", kRank},
                            {"attention.key_length_mla", kPlain + kTurned},
                            {"attention.value_length_mla", kPlain},
                            {"leading_dense_block_count", 1},
                            {"expert_count", 4},
                            {"expert_used_count", 2},
                            {"expert_shared_count", 1},
                            {"expert_feed_forward_length", 64}}}};
  if (split) shape["optional_tensors"] = {"attn_k_b.weight"};
  const std::string path = absl::StrCat(::testing::TempDir(), "/latent-", type,
                                        "-", query_rank, "-", split);
  std::ofstream(path + ".json") << shape;
  SynthesizeOptions options;
  options.shape = path + ".json";
  options.type = type;
  options.seed = 7;
  const auto report = SynthesizeModel(options, path + ".gguf");
  EXPECT_TRUE(report.ok()) << report.status();
  return path + ".gguf";
}

EngineOptions WithCache(DType type) {
  EngineOptions options;
  options.model.graph.kv_type = type;
  options.threads = 2;
  return options;
}

TEST(LatentAttentionTest, BitsDependOnNeitherChunksNorThreadsNorFusions) {
  for (const char* type : {"F32", "Q8_0", "Q4_K_M"}) {
    for (const bool split : {false, true}) {
      ExpectBitsOfTokensAlone(Synthesize(type, split ? 96 : 0, split));
    }
  }
}

TEST(LatentAttentionTest, EveryTypeOfCacheKeepsItsPromise) {
  const std::vector<int32_t> tokens = SomeTokens(70);
  const std::string path = Synthesize("F32", 96, true);
  const std::vector<float> exact =
      Logits(path, WithCache(DType::kF32), tokens, 512);
  for (const DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
    const EngineOptions options = WithCache(type);
    const std::vector<float> logits = Logits(path, options, tokens, 512);
    EXPECT_TRUE(SameBits(logits, Logits(path, options, tokens, 1)));
    ErrorSums sums;
    sums.Add(logits, exact);
    EXPECT_LT(sums.nmse(), 3e-3) << Info(type).name;
  }
}

// The same matrices in the other form.
std::string Split(const std::string& path) {
  const auto file = GgufFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  GgufWriter writer;
  writer.CopyMetadata(*file);
  std::vector<std::unique_ptr<std::vector<float>>> parts;
  const auto add = [&](std::string name, std::vector<int64_t> dims) {
    parts.push_back(
        std::make_unique<std::vector<float>>(dims[0] * dims[1] * dims[2]));
    std::vector<float>& numbers = *parts.back();
    writer.AddTensor(
        name, DType::kF32, dims,
        absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(numbers.data()),
                            numbers.size() * 4));
    return numbers.data();
  };
  for (const GgufTensor& tensor : file->tensors()) {
    const size_t end = tensor.name.find("attn_kv_b");
    if (end == std::string::npos) {
      writer.AddTensor(tensor.name, tensor.type, tensor.dims, tensor.data);
      continue;
    }
    const std::string blk = tensor.name.substr(0, end);
    const auto* from = reinterpret_cast<const float*>(tensor.data.data());
    float* k = add(blk + "attn_k_b.weight", {kPlain, kRank, kHeads});
    float* v = add(blk + "attn_v_b.weight", {kRank, kPlain, kHeads});
    for (int64_t head = 0; head < kHeads; ++head) {
      for (int64_t row = 0; row < kPlain; ++row) {
        for (int64_t i = 0; i < kRank; ++i) {
          k[(head * kRank + i) * kPlain + row] =
              from[(head * 2 * kPlain + row) * kRank + i];
          v[(head * kPlain + row) * kRank + i] =
              from[((head * 2 + 1) * kPlain + row) * kRank + i];
        }
      }
    }
  }
  EXPECT_TRUE(writer.WriteTo(path + ".split").ok());
  return path + ".split";
}

TEST(LatentAttentionTest, BothFormsOfTheMatricesGiveTheSameBits) {
  const std::string path = Synthesize("F32", 96, false);
  const std::vector<int32_t> tokens = SomeTokens(40);
  const EngineOptions options = WithCache(DType::kF32);
  EXPECT_TRUE(SameBits(Logits(path, options, tokens, 0),
                       Logits(Split(path), options, tokens, 0)));
}

TEST(LatentAttentionTest, PassesAndKernelsAgreeWithReferenceFunctions) {
  for (const char* type : {"F32", "Q8_0", "Q4_K_M"}) {
    for (const bool split : {false, true}) {
      ExpectReferenceResults(Synthesize(type, split ? 0 : 96, split));
    }
  }
}

TEST(LatentAttentionTest, TheCacheHoldsOneRowPerTokenForAllHeads) {
  const auto file = GgufFile::Open(Synthesize("F32", 0, true));
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::StatusOr<Plan> plan = CompileModel(*file, DefaultModelOptions());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const PlanMemory memory = MemoryOf(*plan, 1, 1);
  EXPECT_EQ(memory.kv_per_token, 2 * (kRank + kTurned) * 2);
  EXPECT_EQ(memory.kv_per_token_of_heads,
            2 * kHeads * (kPlain + kTurned + kPlain) * 2);
}

}  // namespace
}  // namespace weft
