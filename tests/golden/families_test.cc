// Each family as a small made-up model: its logits against a second
// implementation of the same mathematics, and the promises that hold for all
// models: bits that depend on nothing but tokens, plans at the lower bound,
// every pass and kernel as its reference.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/gguf.h"
#include "loaders/gguf_writer.h"
#include "loaders/quantize_model.h"
#include "loaders/synthesize.h"
#include "ops/dequantize.h"
#include "runtime/api/engine.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/made_up_model.h"
#include "tests/golden/plain_model.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// What differs from the sizes that all have.
struct Family {
  const char* name;
  const char* architecture;
  const char* more;
};

const Family kFamilies[] = {
    {"llama", "llama", ""},
    {"qwen2", "qwen2", R"("tied_output": true)"},
    {"qwen3", "qwen3", R"("tied_output": true, "key_length": 48)"},
    {"gpt2", "gpt2", R"("head_count_kv": 4, "tied_output": true)"},
    {"stablelm", "stablelm",
     R"("rope_dimension_count": 8,
        "optional_tensors": ["attn_q.bias", "attn_k.bias", "attn_v.bias"])"},
    {"stablelm_parallel", "stablelm",
     R"("rope_dimension_count": 8, "keys": {"use_parallel_residual": 1},
        "optional_tensors": ["attn_q_norm.weight", "attn_k_norm.weight"])"},
    {"gemma", "gemma",
     R"("head_count_kv": 1, "key_length": 64, "tied_output": true)"},
    {"gemma2", "gemma2",
     R"("block_count": 3, "tied_output": true,
        "keys": {"attention.sliding_window": 9, "attn_logit_softcapping": 3,
                 "final_logit_softcapping": 2.5})"},
    {"gemma3", "gemma3",
     R"("block_count": 7, "tied_output": true, "rope_freq_base": 1e6,
        "keys": {"attention.sliding_window": 9, "rope.scaling.factor": 8})"},
    // Scores are not scaled: short heads keep their noise small.
    {"gemma4", "gemma4",
     R"("block_count": 6, "tied_output": true, "rope_freq_base": 1e6,
        "key_length": 16, "keys": {
            "attention.sliding_window": 9, "attention.key_length_swa": 8,
            "attention.sliding_window_pattern": 3,
            "attention.value_length_swa": 8, "final_logit_softcapping": 2.5,
            "attention.head_count_kv": [2, 2, 1, 2, 2, 1]},
        "optional_tensors": ["rope_freqs.weight",
                             "layer_output_scale.weight"])"},
    {"gemma4_e", "gemma4",
     R"("block_count": 6, "head_count_kv": 1, "tied_output": true,
        "rope_freq_base": 1e6, "key_length": 16, "keys": {
            "attention.sliding_window": 9, "attention.key_length_swa": 8,
            "attention.sliding_window_pattern": 3,
            "attention.value_length_swa": 8, "attention.shared_kv_layers": 2,
            "embedding_length_per_layer_input": 32,
            "feed_forward_length": [256, 256, 256, 256, 512, 512]},
        "optional_tensors": ["attn_v.weight", "rope_freqs.weight",
                             "layer_output_scale.weight"])"},
    {"gemma4_a", "gemma4",
     R"("block_count": 3, "tied_output": true, "key_length": 16, "keys": {
            "attention.sliding_window": 9, "attention.key_length_swa": 8,
            "attention.sliding_window_pattern": 3,
            "attention.value_length_swa": 8, "expert_count": 6,
            "expert_used_count": 2, "expert_feed_forward_length": 64},
        "optional_tensors": ["rope_freqs.weight", "layer_output_scale.weight",
                             "ffn_gate_up_exps.weight",
                             "ffn_down_exps.scale"])"},
    {"phi3", "phi3",
     R"("keys": {"attention.sliding_window": 11,
                 "rope.scaling.original_context_length": 128,
                 "rope.scaling.attn_factor": 1.125},
        "optional_tensors": ["rope_factors_long.weight",
                             "rope_factors_short.weight"])"},
    {"granite", "granite",
     R"("keys": {"attention.scale": 0.125, "embedding_scale": 12,
                 "residual_scale": 0.21, "logit_scale": 3})"},
    {"olmo2", "olmo2", R"("head_count_kv": 4)"},
    {"exaone4", "exaone4", R"("optional_tensors": ["rope_freqs.weight"])"},
    {"exaone4_hybrid", "exaone4",
     R"("block_count": 5, "keys": {"attention.sliding_window": 9})"},
    {"mistral3", "mistral3",
     R"("key_length": 48, "keys": {
            "attention.temperature_scale": 0.3,
            "rope.scaling.original_context_length": 16})"},
    {"smollm3", "smollm3", R"("block_count": 5, "tied_output": true)"},
    {"seed_oss", "seed_oss",
     R"("key_length": 48,
        "optional_tensors": ["attn_q.bias", "attn_k.bias", "attn_v.bias"])"},
    {"cohere2", "cohere2",
     R"("block_count": 5, "tied_output": true,
        "keys": {"attention.sliding_window": 9, "logit_scale": 0.75})"},
    {"qwen3moe", "qwen3moe",
     R"("key_length": 48, "keys": {"expert_count": 6, "expert_used_count": 3,
        "expert_feed_forward_length": 64})"},
    {"qwen3moe_joined", "qwen3moe",
     R"("keys": {"expert_count": 6, "expert_used_count": 2},
        "optional_tensors": ["ffn_gate_up_exps.weight"])"},
    {"olmoe", "olmoe",
     R"("head_count_kv": 4, "keys": {"expert_count": 8, "expert_used_count": 3,
        "expert_feed_forward_length": 32})"},
    {"granitemoe", "granitemoe",
     R"("keys": {"expert_count": 6, "expert_used_count": 2,
                 "expert_feed_forward_length": 64,
                 "expert_shared_feed_forward_length": 96,
                 "attention.scale": 0.125, "embedding_scale": 12,
                 "residual_scale": 0.21, "logit_scale": 3})"},
    {"ernie45", "ernie4_5", R"("tied_output": true, "key_length": 48)"},
    {"ernie45_moe", "ernie4_5-moe",
     R"("keys": {"expert_count": 6, "expert_used_count": 2,
                 "expert_feed_forward_length": 64, "expert_shared_count": 2,
                 "leading_dense_block_count": 1},
        "optional_tensors": ["exp_probs_b.bias"])"},
    {"hunyuan_dense", "hunyuan-dense", R"("tied_output": true)"},
    {"hunyuan_moe", "hunyuan-moe",
     R"("keys": {"expert_count": 6, "expert_used_count": 2,
                 "expert_feed_forward_length": 64,
                 "expert_shared_feed_forward_length": 128})"},
    {"phimoe", "phimoe",
     R"("keys": {"expert_count": 6, "expert_used_count": 2,
                 "expert_feed_forward_length": 64},
        "optional_tensors": ["output.bias"])"},
    {"gptoss", "gpt-oss",
     R"("block_count": 3, "key_length": 48,
        "keys": {"expert_count": 6, "expert_used_count": 2,
                 "expert_feed_forward_length": 64,
                 "attention.sliding_window": 9},
        "optional_tensors": ["ffn_gate_inp.bias", "ffn_gate_exps.bias",
                             "ffn_up_exps.bias", "ffn_down_exps.bias"])"},
    {"llama4", "llama4",
     R"("block_count": 4, "keys": {"expert_count": 6, "expert_used_count": 1,
                 "expert_feed_forward_length": 64,
                 "interleave_moe_layer_step": 2,
                 "attention.sliding_window": 24})"},
    {"glm4", "glm4",
     R"("rope_dimension_count": 16,
        "optional_tensors": ["attn_q.bias", "attn_k.bias", "attn_v.bias"])"},
};

// A file of this family in the test's own folder. Keys of `more` win.
std::string Synthesize(const Family& family, const std::string& type) {
  nlohmann::json shape = {
      {"architecture", family.architecture},
      {"embedding_length", 128},
      {"block_count", 2},
      {"feed_forward_length", 256},
      {"head_count", 4},
      {"head_count_kv", 2},
      {"vocabulary_size", 320},
      {"context_length", 128},
  };
  shape.update(nlohmann::json::parse(absl::StrCat("{", family.more, "}")));
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/", family.name, "-", type);
  std::ofstream(path + ".json") << shape;
  SynthesizeOptions options;
  options.shape = path + ".json";
  options.type = type;
  options.seed = 5;
  const auto report = SynthesizeModel(options, path + ".gguf");
  EXPECT_TRUE(report.ok()) << report.status();
  return path + ".gguf";
}

EngineOptions ExactCache() {
  EngineOptions options;
  options.model.graph.kv_type = DType::kF32;
  options.threads = 1;
  return options;
}

double Nmse(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  if (a.size() != b.size()) return 1;
  ErrorSums sums;
  sums.Add(a, b);
  EXPECT_GT(sums.power, 0);
  return sums.nmse();
}

// The same model, with one more string in its metadata.
std::string WithString(const std::string& path, const std::string& key,
                       const std::string& value) {
  const auto file = GgufFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  GgufWriter writer;
  writer.CopyMetadata(*file);
  writer.SetString(key, value);
  for (const GgufTensor& tensor : file->tensors()) {
    writer.AddTensor(tensor.name, tensor.type, tensor.dims, tensor.data);
  }
  const std::string result = path + ".changed";
  EXPECT_TRUE(writer.WriteTo(result).ok());
  return result;
}

// The second implementation has no encoders.
bool KnowsPlainly(const std::string& architecture) {
  return std::any_of(std::begin(kFamilies), std::end(kFamilies),
                     [&](const Family& family) {
                       return architecture == family.architecture;
                     });
}

// The second implementation is worth something: it agrees with a third.
TEST(PlainModelTest, AgreesWithTheGoldenModels) {
  int models = 0;
  for (const char* set : {"arch", "families"}) {
    const std::string folder = GoldenFolder(set);
    const nlohmann::json cases = ReadCases(folder);
    for (const auto& [name, model] : cases["models"].items()) {
      if (!KnowsPlainly(model["architecture"])) continue;
      const nlohmann::json& sequence = model["sequences"][1];
      const char* const values =
          sequence.contains("truth") ? "truth" : "values";
      const std::vector<float> logits =
          PlainLogits(folder + model["file"].get<std::string>(),
                      sequence["tokens"].get<std::vector<int32_t>>());
      EXPECT_LT(Nmse(logits,
                     ReadFloats(folder + sequence[values].get<std::string>())),
                1e-11)
          << name;
      ++models;
    }
  }
  EXPECT_GE(models, 15);
}

class FamilyTest : public ::testing::TestWithParam<Family> {};

TEST_P(FamilyTest, LogitsAreThoseOfTheSecondImplementation) {
  const std::string path = Synthesize(GetParam(), "F32");
  const std::vector<int32_t> tokens = SomeTokens(40);
  const std::vector<float> want = PlainLogits(path, tokens);
  for (Isa isa : {DetectIsa(), Isa::kRef}) {
    EngineOptions options = ExactCache();
    options.model.compile.isa = isa;
    EXPECT_LT(Nmse(Logits(path, options, tokens, 0), want), 1e-10) << Name(isa);
  }
}

TEST_P(FamilyTest, BitsDependOnNeitherChunksNorThreadsNorFusions) {
  for (const char* type : {"F32", "Q8_0", "Q4_K_M"}) {
    ExpectBitsOfTokensAlone(Synthesize(GetParam(), type));
  }
}

TEST_P(FamilyTest, ExpertsThatStayInTheFileGiveTheSameBits) {
  if (!absl::StrContains(GetParam().more, "expert_used_count")) GTEST_SKIP();
  for (const char* type : {"F32", "Q8_0", "Q4_K_M"}) {
    EXPECT_GT(ExpectBitsOfStreamedExperts(Synthesize(GetParam(), type)), 0)
        << type;
  }
}

// Rows of 128 and 256: some K types fit, others fall back.
TEST_P(FamilyTest, QuantisesWithAWarningForEachTensorThatDoesNotFit) {
  const std::string path = Synthesize(GetParam(), "F32");
  const std::vector<int32_t> tokens = SomeTokens(40);
  const std::vector<float> want = PlainLogits(path, tokens);
  for (const char* type : {"Q8_0", "Q4_K_M"}) {
    const std::string result = absl::StrCat(path, ".", type);
    QuantizeOptions quantize;
    quantize.type = type;
    const auto report = QuantizeModel(path, result, quantize);
    ASSERT_TRUE(report.ok()) << report.status();
    const bool k_type = std::string(type) == "Q4_K_M";
    EXPECT_EQ(report->warnings.empty(), !k_type);
    for (const std::string& warning : report->warnings) {
      EXPECT_THAT(warning, HasSubstr("stored as"));
    }
    // A router whose scores nearly tie chooses others after rounding.
    const bool experts =
        absl::StrContains(GetParam().more, "expert_used_count");
    const double of_weights = k_type ? 0.2 : experts ? 0.1 : 0.015;
    const double of_rows = experts ? 0.05 : k_type ? 0.02 : 0.005;
    EXPECT_LT(Nmse(Logits(result, ExactCache(), tokens, 0), want), of_weights)
        << type;
    EXPECT_LT(Nmse(Logits(result, ExactCache(), tokens, 0),
                   PlainLogits(result, tokens)),
              of_rows)
        << type;
  }
}

TEST_P(FamilyTest, PassesAndKernelsAgreeWithReferenceFunctions) {
  for (const char* type : {"F32", "Q4_K_M"}) {
    ExpectReferenceResults(Synthesize(GetParam(), type));
  }
}

INSTANTIATE_TEST_SUITE_P(All, FamilyTest, ::testing::ValuesIn(kFamilies),
                         [](const ::testing::TestParamInfo<Family>& info) {
                           return std::string(info.param.name);
                         });

// The text part of models that see: that of the models that do not.
TEST(VisionTest, TextIsThatOfTheLanguageModel) {
  const std::vector<int32_t> tokens = SomeTokens(20);
  constexpr char kMixture[] =
      R"("keys": {"expert_count": 4, "expert_used_count": 2})";
  for (const auto& [name, with, more] : std::vector<std::array<const char*, 3>>{
           {"qwen2", "qwen2vl", ""},
           {"qwen3", "qwen3vl", ""},
           {"qwen3moe", "qwen3vlmoe", kMixture}}) {
    const std::string plain = Synthesize({name, name, more}, "F32");
    const std::string seeing = Synthesize({with, with, more}, "F32");
    EXPECT_TRUE(SameBits(Logits(plain, ExactCache(), tokens, 0),
                         Logits(seeing, ExactCache(), tokens, 0)))
        << name;
  }
}

// A number for each expert, which products with its matrix are times: against
// plain matrices that have it in them. Each kind of expert: weights for what
// comes out and for what goes in, biases behind the number.
TEST(ExpertFactorsTest, AreThoseOfMatricesThatHoldThem) {
  const std::vector<int32_t> tokens = SomeTokens(20);
  for (const auto& [architecture, keys] :
       std::vector<std::pair<const char*, const char*>>{
           {"qwen3moe", R"("expert_count": 4, "expert_used_count": 2)"},
           {"gpt-oss", R"("expert_count": 4, "expert_used_count": 2,
                          "attention.sliding_window": 9)"},
           {"llama4", R"("expert_count": 4, "expert_used_count": 1,
                         "attention.chunk_size": 8,
                         "interleave_moe_layer_step": 1)"}}) {
    SCOPED_TRACE(architecture);
    const std::string more = absl::StrCat(R"("keys": {)", keys, "}");
    const std::string name = absl::StrCat("factors_", architecture);
    const auto source = GgufFile::Open(
        Synthesize({name.c_str(), architecture, more.c_str()}, "NVFP4"));
    ASSERT_TRUE(source.ok()) << source.status();
    GgufWriter apart, within;
    apart.CopyMetadata(*source);
    within.CopyMetadata(*source);
    std::deque<std::vector<float>> numbers;
    const auto bytes = [](const std::vector<float>& values) {
      return absl::MakeSpan(reinterpret_cast<const uint8_t*>(values.data()),
                            4 * values.size());
    };
    int matrices = 0;
    for (const GgufTensor& tensor : source->tensors()) {
      const bool experts = tensor.type == DType::kNVFP4 &&
                           absl::EndsWith(tensor.name, "_exps.weight");
      apart.AddTensor(tensor.name, tensor.type, tensor.dims, tensor.data);
      numbers.emplace_back(tensor.elements());
      std::vector<float>& values = numbers.back();
      DequantizeRow(tensor.type, tensor.data.data(), values.data(),
                    tensor.elements());
      if (experts) {
        const std::vector<float> factors = {0.5f, 3.0f, -1.0f, 1.25f};
        const int64_t size = tensor.elements() / 4;
        for (int64_t i = 0; i < tensor.elements(); ++i) {
          values[i] *= factors[i / size];
        }
        const std::string base(absl::StripSuffix(tensor.name, "weight"));
        numbers.push_back(factors);
        apart.AddTensor(base + "scale", DType::kF32, {4},
                        bytes(numbers.back()));
        apart.AddTensor(base + "input_scale", DType::kF32, {4},
                        bytes(numbers.back()));
        ++matrices;
      }
      within.AddTensor(tensor.name, DType::kF32, tensor.dims, bytes(values));
    }
    EXPECT_GE(matrices, 3);
    const std::string folder = ::testing::TempDir();
    const std::string with = absl::StrCat(folder, "/", name, ".apart.gguf");
    const std::string plain = absl::StrCat(folder, "/", name, ".within.gguf");
    ASSERT_TRUE(apart.WriteTo(with).ok());
    ASSERT_TRUE(within.WriteTo(plain).ok());
    EXPECT_LT(Nmse(Logits(with, ExactCache(), tokens, 0),
                   Logits(plain, ExactCache(), tokens, 0)),
              0.05);
  }
}

// Pairs in between two rotations, where neither linear scaling nor none fits.
TEST(YarnTest, IsThatOfTheSecondImplementation) {
  const Family family = {"yarn", "qwen2",
                         R"("context_length": 512, "keys": {
      "rope.scaling.factor": 4, "rope.scaling.original_context_length": 128})"};
  const std::string plain = Synthesize(family, "F32");
  const std::string path = WithString(plain, "qwen2.rope.scaling.type", "yarn");
  const std::vector<int32_t> tokens = SomeTokens(40);
  const std::vector<float> logits = Logits(path, ExactCache(), tokens, 0);
  EXPECT_LT(Nmse(logits, PlainLogits(path, tokens)), 1e-10);
  EXPECT_GT(Nmse(logits, PlainLogits(plain, tokens)), 1e-3);
}

// The same model with one tensor for queries, keys and values, or the reverse.
std::string WithOtherHeads(const std::string& path, bool join,
                           const std::vector<int64_t>& rows) {
  const auto file = GgufFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  GgufWriter writer;
  writer.CopyMetadata(*file);
  std::deque<std::vector<uint8_t>> joined;
  const char* const parts[] = {"attn_q.", "attn_k.", "attn_v."};
  for (const GgufTensor& tensor : file->tensors()) {
    const size_t at = tensor.name.find(join ? "attn_q." : "attn_qkv.");
    const bool heads = absl::StrContains(tensor.name, ".attn_k.") ||
                       absl::StrContains(tensor.name, ".attn_v.");
    if (at == std::string::npos) {
      if (join && heads) continue;
      writer.AddTensor(tensor.name, tensor.type, tensor.dims, tensor.data);
      continue;
    }
    const std::string blk = tensor.name.substr(0, at);
    const std::string end = tensor.name.substr(tensor.name.find('.', at) + 1);
    std::vector<int64_t> dims = tensor.dims;
    if (join) {
      joined.emplace_back();
      dims.back() = 0;
      for (const char* part : parts) {
        const GgufTensor* found = file->FindTensor(blk + part + end);
        EXPECT_NE(found, nullptr);
        joined.back().insert(joined.back().end(), found->data.begin(),
                             found->data.end());
        dims.back() += found->dims.back();
      }
      writer.AddTensor(blk + "attn_qkv." + end, tensor.type, dims,
                       joined.back());
      continue;
    }
    const size_t row = tensor.data.size() / tensor.dims.back();
    size_t begin = 0;
    for (int i = 0; i < 3; ++i) {
      dims.back() = rows[i];
      writer.AddTensor(blk + parts[i] + end, tensor.type, dims,
                       tensor.data.subspan(begin * row, rows[i] * row));
      begin += rows[i];
    }
  }
  const std::string result = path + ".other";
  EXPECT_TRUE(writer.WriteTo(result).ok());
  return result;
}

TEST(HeadsTest, OneTensorOrThreeGiveTheSameBits) {
  const std::vector<int32_t> tokens = SomeTokens(40);
  for (const auto& [name, join] : {std::pair<const char*, bool>{"qwen2", true},
                                   {"seed_oss", true},
                                   {"phi3", false},
                                   {"gpt2", false}}) {
    const std::string path =
        Synthesize({name, name, R"("head_count_kv": 4)"}, "F32");
    const std::string other = WithOtherHeads(path, join, {128, 128, 128});
    EXPECT_TRUE(SameBits(Logits(path, ExactCache(), tokens, 0),
                         Logits(other, ExactCache(), tokens, 0)))
        << name;
  }
}

// Each expert's likelihood is 0 in a float, and so is the sum of the chosen.
TEST(RouterTest, WeightsThatAllVanishAreZeros) {
  const std::string path =
      Synthesize({"vanishing", "dots1",
                  R"("keys": {"expert_count": 4, "expert_used_count": 2,
                   "expert_feed_forward_length": 64},
          "optional_tensors": ["ffn_gate_inp.bias"])"},
                 "F32");
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  GgufWriter writer;
  writer.CopyMetadata(*file);
  const std::vector<float> low(4, -1000.0f);
  for (const GgufTensor& tensor : file->tensors()) {
    const bool bias = absl::EndsWith(tensor.name, "ffn_gate_inp.bias");
    writer.AddTensor(tensor.name, tensor.type, tensor.dims,
                     bias
                         ? absl::MakeConstSpan(
                               reinterpret_cast<const uint8_t*>(low.data()), 16)
                         : tensor.data);
  }
  const std::string result = path + ".low";
  ASSERT_TRUE(writer.WriteTo(result).ok());
  for (float logit : Logits(result, ExactCache(), SomeTokens(10), 0)) {
    ASSERT_TRUE(std::isfinite(logit));
  }
  ExpectBitsOfTokensAlone(result);
  ExpectReferenceResults(result);
}

// Which factors hold is decided by the context of the plan.
TEST(LongRopeTest, FactorsFollowTheContextAndShortOnesAreTheDefault) {
  const Family family = {"longrope", "phi3",
                         R"("context_length": 1024, "keys": {
      "rope.scaling.original_context_length": 128},
      "optional_tensors": ["rope_factors_long.weight",
                           "rope_factors_short.weight"])"};
  const std::string path = Synthesize(family, "F32");
  const std::vector<int32_t> tokens = SomeTokens(40);
  const auto at_context = [&](int64_t context) {
    EngineOptions options = ExactCache();
    options.model.graph.context = context;
    return Logits(path, options, tokens, 0);
  };
  const std::vector<float> short_ones = PlainLogits(path, tokens);
  EXPECT_LT(Nmse(at_context(0), short_ones), 1e-10);
  EXPECT_TRUE(SameBits(at_context(0), at_context(128)));
  EXPECT_GT(Nmse(at_context(129), short_ones), 1e-3);
  EXPECT_TRUE(SameBits(at_context(129), at_context(1024)));
}

}  // namespace
}  // namespace weft
