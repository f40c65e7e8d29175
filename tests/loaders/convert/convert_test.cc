// Folders that the test makes of model files become those files again: tensors
// byte for byte, keys by value, and logits to the bit.
#include "loaders/convert/convert.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/gguf.h"
#include "loaders/safetensors/safetensors.h"
#include "loaders/synthesize.h"
#include "tests/golden/made_up_model.h"
#include "tests/loaders/convert/published_folder.h"
#include "tests/loaders/safetensors/safetensors_file.h"

namespace weft {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

struct Case {
  const char* name;
  const char* architecture;
  const char* shape;  // merged into the sizes that all have
  PublishedOptions published;
  std::string tensor_type;  // PATTERN=TYPE
};

PublishedOptions Published(const std::string& class_name, json config = {},
                           json names = json::object()) {
  PublishedOptions options;
  options.class_name = class_name;
  options.config = {{"hidden_act", "silu"}};
  if (!config.is_null()) options.config.update(config);
  options.names = std::move(names);
  return options;
}

PublishedOptions WithPairs(PublishedOptions options) {
  options.pairs = true;
  return options;
}

PublishedOptions Gemma(const std::string& class_name, json config = {}) {
  PublishedOptions options = Published(class_name, std::move(config));
  options.config["hidden_act"] = "gelu_pytorch_tanh";
  options.norms_lack_one = true;
  if (class_name != "GemmaForCausalLM") {
    options.names = {{"post_attention_norm", "post_attention_layernorm"},
                     {"ffn_norm", "pre_feedforward_layernorm"},
                     {"post_ffw_norm", "post_feedforward_layernorm"}};
  }
  return options;
}

PublishedOptions WithExperts(PublishedOptions options,
                             const std::string& experts) {
  options.experts = experts;
  return options;
}

std::vector<Case> Cases() {
  const json kMixtral = {{"ffn_gate_inp", "block_sparse_moe.gate"},
                         {"ffn_gate_exps", "block_sparse_moe.experts.{e}.w1"},
                         {"ffn_down_exps", "block_sparse_moe.experts.{e}.w2"},
                         {"ffn_up_exps", "block_sparse_moe.experts.{e}.w3"}};
  const json kMoe = {{"num_experts", 6},
                     {"moe_intermediate_size", 64},
                     {"norm_topk_prob", true},
                     {"decoder_sparse_step", 1},
                     {"mlp_only_layers", json::array()}};
  json shared_moe = kMoe;
  shared_moe["norm_topk_prob"] = false;
  shared_moe["shared_expert_intermediate_size"] = 96;
  const json kScales = {{"attention_multiplier", 0.125},
                        {"embedding_multiplier", 12},
                        {"residual_multiplier", 0.21},
                        {"logits_scaling", 3},
                        {"position_embedding_type", "rope"}};
  json granite_moe = kScales;
  granite_moe.update(
      {{"num_local_experts", 6}, {"shared_intermediate_size", 96}});
  const json kGptOss = {{"post_attention_norm", "post_attention_layernorm"},
                        {"attn_sinks", "self_attn.sinks!"},
                        {"ffn_gate_inp", "mlp.router"}};
  const char* const kGptOssShape =
      R"("block_count": 2, "key_length": 32,
         "keys": {"expert_count": 6, "expert_used_count": 2,
                  "expert_feed_forward_length": 256,
                  "attention.sliding_window": 9},
         "optional_tensors": ["ffn_gate_inp.bias", "ffn_gate_exps.bias",
                              "ffn_up_exps.bias", "ffn_down_exps.bias",
                              "attn_output.bias"])";
  const json kGptOssConfig = {
      {"num_local_experts", 6},
      {"sliding_window", 9},
      {"swiglu_limit", 7.0},
      {"intermediate_size", 256},
      {"layer_types", {"sliding_attention", "full_attention"}}};
  const char* const kMoeShape =
      R"("key_length": 48, "keys": {"expert_count": 6, "expert_used_count": 3,
         "expert_feed_forward_length": 64, "expert_weights_norm": 1})";
  std::vector<json> gemma3_types(7, "sliding_attention");
  gemma3_types[5] = "full_attention";
  PublishedOptions parts = WithPairs(Published("LlamaForCausalLM"));
  parts.parts = 3;
  PublishedOptions headless =
      WithPairs(Published("LlamaModel", {{"tie_word_embeddings", true}}));
  headless.prefix = "";
  PublishedOptions seeing =
      Gemma("Gemma3ForConditionalGeneration",
            {{"sliding_window", 9},
             {"rope_local_base_freq", 10000},
             {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8}}},
             {"query_pre_attn_scalar", 48},
             {"layer_types", gemma3_types}});
  seeing.prefix = "language_model.model.";
  return {
      {"llama", "llama", "", WithPairs(Published("LlamaForCausalLM")), ""},
      {"llama_parts", "llama", "", parts, ""},
      {"llama_biases", "llama",
       R"("tied_output": true, "optional_tensors": ["attn_q.bias",
          "attn_k.bias", "attn_v.bias", "attn_output.bias"])",
       WithPairs(Published("LlamaForCausalLM", {{"attention_bias", true}})),
       ""},
      {"llama_headless", "llama", R"("tied_output": true)", headless, ""},
      {"mistral", "llama",
       R"("key_length": 48, "keys": {"attention.sliding_window": 64})",
       WithPairs(Published("MistralForCausalLM", {{"sliding_window", 64}})),
       ""},
      {"mixtral", "llama",
       R"("keys": {"expert_count": 12, "expert_used_count": 2})",
       WithPairs(Published("MixtralForCausalLM", {{"num_local_experts", 12}},
                           kMixtral)),
       ""},
      {"qwen2", "qwen2", R"("tied_output": true)",
       Published("Qwen2ForCausalLM", {{"use_sliding_window", false},
                                      {"sliding_window", 32},
                                      {"max_window_layers", 2}}),
       ""},
      {"qwen3", "qwen3", R"("tied_output": true, "key_length": 48)",
       Published("Qwen3ForCausalLM",
                 {{"rope_scaling", nullptr}, {"attention_bias", false}}),
       ""},
      {"qwen2moe", "qwen2moe",
       R"("keys": {"expert_count": 6, "expert_used_count": 3,
          "expert_feed_forward_length": 64,
          "expert_shared_feed_forward_length": 96})",
       Published("Qwen2MoeForCausalLM", shared_moe), ""},
      {"qwen3moe", "qwen3moe", kMoeShape,
       Published("Qwen3MoeForCausalLM", kMoe), ""},
      {"qwen3moe_joined", "qwen3moe", kMoeShape,
       WithExperts(Published("Qwen3MoeForCausalLM", kMoe,
                             {{"joined", "mlp.experts.gate_up_proj"},
                              {"ffn_down_exps", "mlp.experts.down_proj"}}),
                   "joined"),
       ""},
      {"gemma", "gemma",
       R"("head_count_kv": 1, "key_length": 64, "tied_output": true)",
       Gemma("GemmaForCausalLM"), ""},
      {"gemma2", "gemma2",
       R"("block_count": 3, "tied_output": true, "key_length": 48,
          "keys": {"attention.sliding_window": 9, "attn_logit_softcapping": 3,
                   "final_logit_softcapping": 2.5})",
       Gemma("Gemma2ForCausalLM", {{"sliding_window", 9},
                                   {"attn_logit_softcapping", 3},
                                   {"final_logit_softcapping", 2.5},
                                   {"query_pre_attn_scalar", 48}}),
       ""},
      {"gemma3_seeing", "gemma3",
       R"("block_count": 7, "tied_output": true, "rope_freq_base": 1e6,
          "key_length": 48,
          "keys": {"attention.sliding_window": 9, "rope.scaling.factor": 8})",
       seeing, ""},
      {"phi3", "phi3",
       R"("keys": {"attention.sliding_window": 11,
                   "rope.scaling.original_context_length": 128})",
       Published(
           "Phi3ForCausalLM",
           {{"sliding_window", 11}, {"original_max_position_embeddings", 128}},
           {{"ffn_up", "mlp.gate_up_proj"}}),
       ""},
      {"olmo2", "olmo2", R"("head_count_kv": 4)",
       Published("Olmo2ForCausalLM", {},
                 {{"post_attention_norm", "post_attention_layernorm"},
                  {"post_ffw_norm", "post_feedforward_layernorm"}}),
       ""},
      {"smollm3", "smollm3", R"("block_count": 5, "tied_output": true)",
       WithPairs(Published("SmolLM3ForCausalLM",
                           {{"no_rope_layer_interval", 4},
                            {"no_rope_layers", {1, 1, 1, 0, 1}}})),
       ""},
      {"granite", "granite",
       R"("keys": {"attention.scale": 0.125, "embedding_scale": 12,
                   "residual_scale": 0.21, "logit_scale": 3})",
       WithPairs(Published("GraniteForCausalLM", kScales)), ""},
      {"granitemoe", "granitemoe",
       R"("keys": {"expert_count": 6, "expert_used_count": 2,
                   "expert_shared_feed_forward_length": 96,
                   "attention.scale": 0.125, "embedding_scale": 12,
                   "residual_scale": 0.21, "logit_scale": 3})",
       WithExperts(
           WithPairs(Published(
               "GraniteMoeSharedForCausalLM", granite_moe,
               {{"ffn_gate_inp", "block_sparse_moe.router.layer"},
                {"joined", "block_sparse_moe.input_linear.weight"},
                {"shared_joined", "shared_mlp.input_linear.weight"},
                {"ffn_down_exps", "block_sparse_moe.output_linear.weight"},
                {"ffn_down_shexp", "shared_mlp.output_linear"}})),
           "joined"),
       ""},
      {"stablelm", "stablelm",
       R"("rope_dimension_count": 8, "keys": {"use_parallel_residual": 1},
          "optional_tensors": ["attn_q_norm.weight", "attn_k_norm.weight"])",
       Published("StableLmForCausalLM",
                 {{"use_parallel_residual", true},
                  {"partial_rotary_factor", 0.25},
                  {"qk_layernorm", true}},
                 {{"attn_q_norm", "self_attn.q_layernorm.norms.{e}"},
                  {"attn_k_norm", "self_attn.k_layernorm.norms.{e}"}}),
       ""},
      {"gptoss", "gpt-oss", kGptOssShape,
       WithExperts(Published("GptOssForCausalLM", kGptOssConfig, kGptOss),
                   "gpt-oss"),
       ""},
      {"gptoss_packed", "gpt-oss", kGptOssShape,
       WithExperts(
           Published(
               "GptOssForCausalLM",
               [&] {
                 json config = kGptOssConfig;
                 config["quantization_config"] = {{"quant_method", "mxfp4"}};
                 return config;
               }(),
               kGptOss),
           "gpt-oss"),
       "_exps.weight=MXFP4"},
      {"glm4", "glm4",
       R"("rope_dimension_count": 16,
          "optional_tensors": ["attn_q.bias", "attn_k.bias", "attn_v.bias"])",
       Published("Glm4ForCausalLM", {{"partial_rotary_factor", 0.5}},
                 {{"ffn_up", "mlp.gate_up_proj"},
                  {"post_attention_norm", "post_self_attn_layernorm"},
                  {"post_ffw_norm", "post_mlp_layernorm"}}),
       ""},
  };
}

std::string Synthesize(const Case& each, const std::string& type = "F32") {
  json shape = {
      {"architecture", each.architecture},
      {"embedding_length", 128},
      {"block_count", 2},
      {"feed_forward_length", 256},
      {"head_count", 4},
      {"head_count_kv", 2},
      {"vocabulary_size", 320},
      {"context_length", 128},
  };
  shape.update(json::parse(absl::StrCat("{", each.shape, "}")));
  const std::string path =
      absl::StrCat(testing::TempDir(), "/", each.name, "-", type);
  std::ofstream(path + ".json") << shape;
  SynthesizeOptions options;
  options.shape = path + ".json";
  options.type = type;
  options.seed = 5;
  if (!each.tensor_type.empty()) options.tensor_types = {each.tensor_type};
  const auto report = SynthesizeModel(options, path + ".gguf");
  EXPECT_TRUE(report.ok()) << report.status();
  return path + ".gguf";
}

std::string FolderOf(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "/", name, "-folder");
}

void ExpectSameTensors(const GgufFile& made, const GgufFile& source) {
  EXPECT_EQ(made.tensors().size(), source.tensors().size());
  for (const GgufTensor& tensor : source.tensors()) {
    const GgufTensor* const found = made.FindTensor(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->dims, tensor.dims) << tensor.name;
    EXPECT_EQ(found->type, tensor.type) << tensor.name;
    EXPECT_TRUE(found->data == tensor.data) << tensor.name;
  }
}

// What the source says of the architecture, the other says too.
void ExpectSameKeys(const GgufFile& made, const GgufFile& source) {
  const std::string prefix = *source.GetString("general.architecture") + ".";
  EXPECT_EQ(*made.GetString("general.architecture") + ".", prefix);
  for (const GgufKeyValue& entry : source.metadata()) {
    if (!absl::StartsWith(entry.key, prefix)) continue;
    const GgufValue* const found = made.FindValue(entry.key);
    // Of a head as a whole, and of linear scaling, which are what no key says.
    if (found == nullptr &&
        (absl::EndsWith(entry.key, ".rope.dimension_count") ||
         absl::EndsWith(entry.key, ".vocab_size"))) {
      continue;
    }
    ASSERT_NE(found, nullptr) << entry.key;
    if (entry.value.ToBool() || found->ToBool()) {
      // The maker of files writes flags as numbers.
      const auto flag = [](const GgufValue& value) {
        return value.ToBool() ? *value.ToBool() : *value.ToDouble() != 0;
      };
      EXPECT_EQ(flag(*found), flag(entry.value)) << entry.key;
    } else {
      EXPECT_EQ(found->ToDouble(), entry.value.ToDouble()) << entry.key;
    }
  }
}

class Families : public testing::TestWithParam<Case> {};

TEST_P(Families, AFolderBecomesTheFileThatItWasMadeOf) {
  const Case& each = GetParam();
  const std::string source_path = Synthesize(each);
  const std::string folder = FolderOf(each.name);
  WritePublishedFolder(source_path, folder, each.published);
  const std::string path = folder + ".gguf";
  const auto report = ConvertFolder(folder, path, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->warnings.empty()) << report->warnings[0];
  const auto made = GgufFile::Open(path), source = GgufFile::Open(source_path);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(source.ok()) << source.status();
  ExpectSameTensors(*made, *source);
  ExpectSameKeys(*made, *source);
  EngineOptions options;
  options.threads = 1;
  const std::vector<int32_t> tokens = SomeTokens(20);
  EXPECT_TRUE(SameBits(Logits(path, options, tokens, 7),
                       Logits(source_path, options, tokens, 7)));
}

INSTANTIATE_TEST_SUITE_P(All, Families, testing::ValuesIn(Cases()),
                         [](const auto& each) { return each.param.name; });

class ConvertTest : public testing::Test {
 protected:
  void SetUp() override {
    const Case each = Cases()[0];
    folder_ =
        FolderOf(testing::UnitTest::GetInstance()->current_test_info()->name());
    WritePublishedFolder(Synthesize(each), folder_, each.published);
    config_ = json::parse(std::ifstream(folder_ + "/config.json"));
  }

  absl::StatusOr<ConvertReport> Convert(const ConvertOptions& options = {}) {
    WriteFileBytes(folder_ + "/config.json", config_.dump());
    return ConvertFolder(folder_, folder_ + ".gguf", options);
  }
  std::string Message() {
    const auto report = Convert();
    EXPECT_FALSE(report.ok());
    return std::string(report.status().message());
  }
  void WriteTensors(const std::vector<TestTensor>& tensors) {
    WriteFileBytes(folder_ + "/model.safetensors", SafetensorsBytes(tensors));
  }

  std::string folder_;
  json config_;
};

TEST_F(ConvertTest, EqualFoldersGiveEqualBytes) {
  ASSERT_TRUE(Convert().ok());
  const auto bytes = [&] {
    std::ifstream stream(folder_ + ".gguf", std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(stream)), {});
  };
  const std::string first = bytes();
  ASSERT_TRUE(Convert().ok());
  EXPECT_EQ(bytes(), first);
}

TEST_F(ConvertTest, MatricesGetTheTypeAskedForAndVectorsStayF32) {
  for (DType type : {DType::kF16, DType::kBF16, DType::kF32}) {
    ConvertOptions options;
    options.type = type;
    const auto report = Convert(options);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->type, type);
    const auto file = GgufFile::Open(folder_ + ".gguf");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->FindTensor("blk.0.ffn_up.weight")->type, type);
    EXPECT_EQ(file->FindTensor("blk.0.attn_norm.weight")->type, DType::kF32);
    EXPECT_EQ(*file->GetUint("general.file_type"), type == DType::kF16    ? 1u
                                                   : type == DType::kBF16 ? 32u
                                                                          : 0u);
  }
}

// Weights of 16 bits stay what they are, rows in another order or not.
TEST_F(ConvertTest, StoredTypesAreKept) {
  for (const char* type : {"F16", "BF16"}) {
    const Case each = Cases()[0];
    const std::string source_path = Synthesize(each, type);
    WritePublishedFolder(source_path, folder_, each.published);
    ASSERT_TRUE(ConvertFolder(folder_, folder_ + ".gguf", {}).ok());
    ExpectSameTensors(*GgufFile::Open(folder_ + ".gguf"),
                      *GgufFile::Open(source_path));
  }
}

TEST_F(ConvertTest, NumbersThatF16CannotHoldAreRefused) {
  std::vector<float> large(320 * 128, 1e6f);
  WriteTensors({{"model.embed_tokens.weight",
                 "F32",
                 {320, 128},
                 std::string(reinterpret_cast<const char*>(large.data()),
                             large.size() * 4)},
                {"model.layers.0.input_layernorm.weight", "F32", {1}, "abcd"},
                {"model.layers.1.input_layernorm.weight", "F32", {1}, "abcd"}});
  config_["tie_word_embeddings"] = true;
  ConvertOptions options;
  options.type = DType::kF16;
  std::filesystem::remove(folder_ + ".gguf");
  const auto report = Convert(options);
  EXPECT_THAT(std::string(report.status().message()),
              HasSubstr("model.embed_tokens.weight"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + ".gguf"));
}

TEST_F(ConvertTest, RotationOfLlama3BecomesFactorsOfFrequencies) {
  config_["rope_scaling"] = {{"rope_type", "llama3"},
                             {"factor", 8.0},
                             {"low_freq_factor", 1.0},
                             {"high_freq_factor", 4.0},
                             {"original_max_position_embeddings", 8192}};
  config_["rope_theta"] = 500000.0;
  ASSERT_TRUE(Convert().ok());
  const auto file = GgufFile::Open(folder_ + ".gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  const GgufTensor* const factors = file->FindTensor("rope_freqs.weight");
  ASSERT_NE(factors, nullptr);
  ASSERT_EQ(factors->dims, std::vector<int64_t>{16});
  std::vector<float> values(16);
  std::memcpy(values.data(), factors->data.data(), 64);
  // By hand: pair i turns once in 2 pi 500000^(i / 16) tokens. The first eight
  // do so within 2048, the last five take more than 8192.
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[7], 1.0f);
  EXPECT_EQ(values[15], 8.0f);
  const double wave = 2 * 3.14159265358979 * std::pow(500000.0, 8.0 / 16);
  const double smooth = (8192 / wave - 1) / 3;
  EXPECT_NEAR(values[8], 1 / ((1 - smooth) / 8 + smooth), 1e-5);
}

TEST_F(ConvertTest, YarnIsSaidByKeys) {
  config_["rope_scaling"] = {{"rope_type", "yarn"},
                             {"factor", 4.0},
                             {"beta_fast", 24.0},
                             {"attention_factor", 1.5},
                             {"original_max_position_embeddings", 32}};
  ASSERT_TRUE(Convert().ok());
  const auto file = GgufFile::Open(folder_ + ".gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string kScaling = "llama.rope.scaling.";
  EXPECT_EQ(*file->GetString(kScaling + "type"), "yarn");
  EXPECT_EQ(*file->GetFloat(kScaling + "factor"), 4.0);
  EXPECT_EQ(*file->GetFloat(kScaling + "yarn_beta_fast"), 24.0);
  EXPECT_EQ(*file->GetUint(kScaling + "original_context_length"), 32u);
  // What the paper's fit, 1 + ln(4) / 10, is multiplied with to be 1.5.
  EXPECT_NEAR(*file->GetFloat(kScaling + "yarn_attn_factor"),
              1.5 / (1 + 0.1 * std::log(4.0)), 1e-6);
}

// Newer folders have all about rotation in one object, by kinds of blocks.
TEST_F(ConvertTest, RotationMayBeInOneObject) {
  config_.erase("rope_theta");
  config_["rope_parameters"] = {{"rope_type", "default"},
                                {"rope_theta", 12345.0}};
  ASSERT_TRUE(Convert().ok());
  EXPECT_EQ(
      *GgufFile::Open(folder_ + ".gguf")->GetFloat("llama.rope.freq_base"),
      12345.0);
}

json FloatsOf(const GgufFile& file, const std::string& name) {
  const GgufTensor& tensor = *file.FindTensor(name);
  std::vector<float> values(tensor.data.size() / sizeof(float));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

TEST(Golden, LongropeFactorsBecomeTensors) {
  const std::string source_path = "tests/data/golden/arch/phi3-longrope.gguf";
  const auto source = GgufFile::Open(source_path);
  ASSERT_TRUE(source.ok()) << source.status();
  PublishedOptions published = Published(
      "Phi3ForCausalLM",
      {{"sliding_window", 1024},
       {"original_max_position_embeddings", 1024},
       {"rope_scaling",
        {{"type", "longrope"},
         {"attention_factor", 1.19},
         {"long_factor", FloatsOf(*source, "rope_factors_long.weight")},
         {"short_factor", FloatsOf(*source, "rope_factors_short.weight")}}}},
      {{"ffn_up", "mlp.gate_up_proj"}});
  const std::string folder = FolderOf("longrope");
  WritePublishedFolder(source_path, folder, published);
  const auto report = ConvertFolder(folder, folder + ".gguf", {});
  ASSERT_TRUE(report.ok()) << report.status();
  const auto made = GgufFile::Open(folder + ".gguf");
  ExpectSameTensors(*made, *source);
  ExpectSameKeys(*made, *source);
}

// BERT's own list of words, as small as it can be.
json Words(int size) {
  json vocabulary = json::object(), added = json::array();
  int id = 0;
  for (const char* control : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    added.push_back({{"id", id}, {"content", control}, {"special", true}});
    vocabulary[control] = id++;
  }
  while (id < size) {
    vocabulary[absl::StrCat("w", id)] = id;
    ++id;
  }
  return {
      {"added_tokens", added},
      {"normalizer", {{"type", "BertNormalizer"}, {"lowercase", true}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor",
       {{"type", "BertProcessing"},
        {"cls", {"[CLS]", 2}},
        {"sep", {"[SEP]", 3}}}},
      {"model",
       {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"vocab", vocabulary}}}};
}

PublishedOptions Encoder(const std::string& class_name, json config,
                         json names) {
  PublishedOptions options = Published(class_name, std::move(config));
  options.names = std::move(names);
  options.names.update(
      {{"token_embd.weight", "embeddings.word_embeddings.weight"},
       {"token_types.weight", "embeddings.token_type_embeddings.weight"}});
  options.config.update({{"type_vocab_size", 2}});
  options.tokenizer = Words(320);
  options.prefix = "encoder.";
  return options;
}

void ExpectEncoderComesBack(const std::string& source_path,
                            const PublishedOptions& published) {
  const std::string folder = FolderOf(published.class_name);
  WritePublishedFolder(source_path, folder, published);
  std::filesystem::create_directories(folder + "/1_Pooling");
  WriteFileBytes(folder + "/1_Pooling/config.json",
                 R"({"pooling_mode_mean_tokens": true,
                     "pooling_mode_cls_token": false})");
  const auto report = ConvertFolder(folder, folder + ".gguf", {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->warnings.empty()) << report->warnings[0];
  const auto made = GgufFile::Open(folder + ".gguf");
  const auto source = GgufFile::Open(source_path);
  ExpectSameTensors(*made, *source);
  ExpectSameKeys(*made, *source);
  for (const char* key :
       {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.seperator_token_id",
        "tokenizer.ggml.token_type_count"}) {
    EXPECT_EQ(*made->GetUint(key), *source->GetUint(key)) << key;
  }
  WriteFileBytes(folder + "/1_Pooling/config.json",
                 R"({"pooling_mode_max_tokens": true})");
  EXPECT_THAT(
      std::string(
          ConvertFolder(folder, folder + ".gguf", {}).status().message()),
      HasSubstr("pooling_mode"));
}

// With the names and the form of BERT's layers.
PublishedOptions BertEncoder(const std::string& class_name) {
  PublishedOptions published = Encoder(
      class_name, {{"position_embedding_type", "absolute"}},
      {{"position_embd.weight", "embeddings.position_embeddings.weight"},
       {"token_embd_norm.weight", "embeddings.LayerNorm.weight"},
       {"token_embd_norm.bias", "embeddings.LayerNorm.bias"},
       {"attn_q", "attention.self.query"},
       {"attn_k", "attention.self.key"},
       {"attn_v", "attention.self.value"},
       {"attn_output", "attention.output.dense"},
       {"attn_output_norm", "attention.output.LayerNorm"},
       {"ffn_up", "intermediate.dense"},
       {"ffn_down", "output.dense"},
       {"layer_output_norm", "output.LayerNorm"}});
  published.config["hidden_act"] = "gelu";
  published.layers = "layer.";
  return published;
}

TEST(Golden, Bert) {
  PublishedOptions published = BertEncoder("BertModel");
  ExpectEncoderComesBack("tests/data/golden/arch/bert.gguf", published);
}

// SentencePiece's Unigram as XLM-RoBERTa publishes it, of a file's vocabulary.
json UnigramOf(const GgufFile& file) {
  const auto tokens = *file.GetStrings("tokenizer.ggml.tokens");
  const auto scores = *file.GetFloats("tokenizer.ggml.scores");
  const auto types = *file.GetInts("tokenizer.ggml.token_type");
  json pieces = json::array(), added = json::array();
  constexpr int64_t kUnused = 5;
  for (size_t i = 0; i < tokens.size() && types[i] != kUnused; ++i) {
    pieces.push_back({std::string(tokens[i]), scores[i]});
    if (types[i] == 1) continue;
    added.push_back({{"id", i},
                     {"content", std::string(tokens[i])},
                     {"special", types[i] != 4}});
  }
  const auto end = [](const char* text) {
    return json{{"SpecialToken", {{"id", text}, {"type_id", 0}}}};
  };
  return {
      {"added_tokens", added},
      {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "\u2581"}}},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", {end("<s>"), {{"Sequence", {{"id", "A"}}}}, end("</s>")}}}},
      {"model", {{"type", "Unigram"}, {"unk_id", 3}, {"vocab", pieces}}}};
}

// Published tables of positions have two rows more.
void AddTwoPositions(const std::string& folder) {
  const auto published = SafetensorsFolder::Open(folder);
  ASSERT_TRUE(published.ok()) << published.status();
  std::vector<TestTensor> tensors;
  for (const SafetensorsTensor& tensor : published->tensors()) {
    tensors.push_back({tensor.name, tensor.type, tensor.shape,
                       std::string(tensor.data.begin(), tensor.data.end())});
    if (!absl::EndsWith(tensor.name, "position_embeddings.weight")) continue;
    TestTensor& table = tensors.back();
    table.shape[0] += 2;
    table.bytes.insert(0, 2 * table.shape[1] * sizeof(float), '\x01');
  }
  const std::string other = folder + "/other.safetensors";
  WriteFileBytes(other, SafetensorsBytes(tensors));
  std::filesystem::rename(other, folder + "/model.safetensors");
}

TEST(Golden, XlmRoberta) {
  const std::pair<const char*, const char*> kModels[] = {
      {"XLMRobertaModel", "bert-unigram"},
      {"XLMRobertaForSequenceClassification", "bert-reranker"}};
  for (const auto& [class_name, name] : kModels) {
    const std::string path =
        absl::StrCat("tests/data/golden/embeddings/", name, ".gguf");
    const auto source = GgufFile::Open(path);
    ASSERT_TRUE(source.ok()) << source.status();
    PublishedOptions published = BertEncoder(class_name);
    published.names.update({{"cls.weight", "classifier.dense.weight"},
                            {"cls.bias", "classifier.dense.bias"},
                            {"cls.output.weight", "classifier.out_proj.weight"},
                            {"cls.output.bias", "classifier.out_proj.bias"}});
    published.config.update({{"type_vocab_size", 1},
                             {"pad_token_id", 1},
                             {"max_position_embeddings", 128},
                             {"id2label", {{"0", "LABEL_0"}}}});
    published.tokenizer = UnigramOf(*source);
    const std::string folder = FolderOf(name);
    WritePublishedFolder(path, folder, published);
    AddTwoPositions(folder);
    WriteFileBytes(folder + "/tokenizer_config.json",
                   R"({"bos_token": "<s>", "eos_token": "</s>", "sep_token":
                       "</s>", "cls_token": "<s>", "pad_token": "<pad>",
                       "unk_token": "<unk>", "mask_token": "<mask>"})");
    if (name == std::string("bert-unigram")) {
      std::filesystem::create_directories(folder + "/1_Pooling");
      WriteFileBytes(folder + "/1_Pooling/config.json",
                     R"({"pooling_mode_cls_token": true})");
    }
    const auto report = ConvertFolder(folder, folder + ".gguf", {});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->warnings.empty()) << report->warnings[0];
    const auto made = GgufFile::Open(folder + ".gguf");
    ASSERT_TRUE(made.ok()) << made.status();
    ExpectSameTensors(*made, *source);
    ExpectSameKeys(*made, *source);
    const size_t used = published.tokenizer["model"]["vocab"].size();
    const auto tokens = *made->GetStrings("tokenizer.ggml.tokens");
    const auto wanted = *source->GetStrings("tokenizer.ggml.tokens");
    EXPECT_EQ(tokens.size(), wanted.size());
    for (size_t i = 0; i < used; ++i) EXPECT_EQ(tokens[i], wanted[i]) << i;
    EXPECT_EQ(*made->GetInts("tokenizer.ggml.token_type"),
              *source->GetInts("tokenizer.ggml.token_type"));
    for (const char* id :
         {"bos", "eos", "unknown", "seperator", "padding", "cls"}) {
      const std::string key = absl::StrCat("tokenizer.ggml.", id, "_token_id");
      EXPECT_EQ(*made->GetUint(key), *source->GetUint(key)) << key;
    }
    for (const char* flag : {"bos", "eos", "sep"}) {
      EXPECT_TRUE(**made->OptionalBool(
          absl::StrCat("tokenizer.ggml.add_", flag, "_token")))
          << flag;
    }
  }
}

TEST(Golden, NomicBert) {
  ExpectEncoderComesBack("tests/data/golden/embeddings/nomic-bert.gguf",
                         Encoder("NomicBertModel",
                                 {// Names of others.
                                  {"rope_theta", nullptr},
                                  {"layer_norm_eps", nullptr},
                                  {"hidden_size", nullptr},
                                  {"num_hidden_layers", nullptr},
                                  {"num_attention_heads", nullptr},
                                  {"intermediate_size", nullptr},
                                  {"max_position_embeddings", nullptr},
                                  {"n_layer", 3},
                                  {"n_embd", 60},
                                  {"n_head", 5},
                                  {"n_inner", 92},
                                  {"n_positions", 8192},
                                  {"max_trained_positions", 128},
                                  {"layer_norm_epsilon", 1e-12},
                                  {"rotary_emb_base", 1000},
                                  {"rotary_emb_fraction", 1.0},
                                  {"activation_function", "swiglu"},
                                  {"qkv_proj_bias", false}},
                                 {{"token_embd_norm.weight", "emb_ln.weight"},
                                  {"token_embd_norm.bias", "emb_ln.bias"},
                                  {"attn_qkv", "attn.Wqkv"},
                                  {"attn_output", "attn.out_proj"},
                                  {"attn_output_norm", "norm1"},
                                  {"ffn_up", "mlp.fc11"},
                                  {"ffn_gate", "mlp.fc12"},
                                  {"ffn_down", "mlp.fc2"},
                                  {"layer_output_norm", "norm2"}}));
}

TEST_F(ConvertTest, KeysThatNobodyObeysAreRefusedByName) {
  const json kGood = config_;
  struct Bad {
    const char* key;
    json value;
    const char* named = nullptr;  // else the key
  };
  const Bad kBad[] = {
      {"architectures", {"NoSuchForCausalLM"}},
      {"hidden_act", "gelu"},
      {"num_hidden_layers", 0},
      {"num_hidden_layers", 3, "block 2 of 3"},
      {"num_hidden_layers", 1e9},
      {"num_hidden_layers", "2"},
      {"num_hidden_layers", -1},
      {"num_attention_heads", 0},
      {"num_attention_heads", 5, "no rows for pairs"},
      {"hidden_size", 64, "rows of 64 (hidden_size)"},
      {"rms_norm_eps", "x"},
      {"max_position_embeddings", nullptr},
      {"rope_scaling",
       {{"rope_type", "dynamic"}, {"factor", 2.0}},
       "rope_scaling.rope_type"},
      {"rope_scaling", {{"rope_type", "linear"}}, "rope_scaling.factor"},
      {"rope_scaling",
       {{"rope_type", "linear"}, {"factor", -1}},
       "rope_scaling.factor"},
      {"rope_scaling",
       {{"rope_type", "linear"}, {"factor", 2}, {"mscale", 1}},
       "rope_scaling.mscale"},
      {"rope_scaling",
       {{"rope_type", "yarn"}, {"factor", 2.0}},
       "rope_scaling.original_max_position_embeddings"},
      {"rope_scaling", "linear"},
      {"rope_scaling", {2.0}},
      {"rope_parameters", 2},
      {"vocab_size", 319, "320, the rows of the embedding"},
      {"bos_token_id", 320},
      {"eos_token_id", "x"},
      {"quantization_config", {{"quant_method", "gptq"}}},
      {"attn_logit_softcapping", 30.0},
      {"residual_multiplier", 0.5},
      {"layer_types", {"full_attention", "sliding_attention"}},
  };
  for (const Bad& bad : kBad) {
    config_ = kGood;
    config_[bad.key] = bad.value;
    EXPECT_THAT(Message(),
                HasSubstr(bad.named != nullptr ? bad.named
                                               : absl::StrCat(bad.key, " is ")))
        << bad.key << " " << bad.value;
  }
}

// What no table knows, the model's own builder does: the file is opened as a
// model before it takes its place.
TEST_F(ConvertTest, ModelsThatCouldNotRunAreNotWritten) {
  const auto refused = [&](const std::string& why) {
    std::filesystem::remove(folder_ + ".gguf");
    const std::string message = Message();
    EXPECT_THAT(message, HasSubstr(why));
    EXPECT_THAT(message, HasSubstr(folder_));
    EXPECT_THAT(message, Not(HasSubstr(".tmp.")));
    EXPECT_FALSE(std::filesystem::exists(folder_ + ".gguf"));
  };
  const json kGood = config_;
  config_["head_dim"] = 24;
  refused("attn_q.weight");
  config_ = kGood;
  config_["num_key_value_heads"] = 3;
  refused("head");
  config_ = kGood;
  const auto folder = SafetensorsFolder::Open(folder_);
  ASSERT_TRUE(folder.ok());
  for (const std::string& missing :
       {std::string("model.norm.weight"),
        std::string("model.layers.1.input_layernorm.weight"),
        std::string("model.layers.0.mlp.down_proj.weight")}) {
    std::vector<TestTensor> rest;
    for (const SafetensorsTensor& tensor : folder->tensors()) {
      if (tensor.name == missing) continue;
      rest.push_back({tensor.name, tensor.type, tensor.shape,
                      std::string(tensor.data.begin(), tensor.data.end())});
    }
    ASSERT_EQ(rest.size() + 1, folder->tensors().size()) << missing;
    const std::string other = folder_ + "/other.safetensors";
    WriteFileBytes(other, SafetensorsBytes(rest));
    // The old file stays mapped.
    std::filesystem::rename(other, folder_ + "/model.safetensors");
    refused("cannot run");
  }
}

TEST_F(ConvertTest, UnknownKeysAreNamedInAWarning) {
  config_["colour_of_weights"] = "blue";
  config_["attention_multiplier"] = 1.0;
  const auto report = Convert();
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->warnings.size(), 1u);
  EXPECT_THAT(report->warnings[0], HasSubstr("colour_of_weights"));
}

TEST_F(ConvertTest, TensorsThatDoNotFitAreRefusedByName) {
  const auto with = [&](std::vector<TestTensor> more) {
    std::vector<TestTensor> tensors = {
        {"model.embed_tokens.weight",
         "F32",
         {320, 128},
         std::string(320 * 128 * 4, '\0')},
        {"model.layers.0.input_layernorm.weight", "F32", {1}, "abcd"},
        {"model.layers.1.input_layernorm.weight", "F32", {1}, "abcd"}};
    for (TestTensor& tensor : more) tensors.push_back(std::move(tensor));
    WriteTensors(tensors);
    config_["tie_word_embeddings"] = true;
    return Message();
  };
  const std::string kLayer = "model.layers.0.";
  EXPECT_THAT(with({{kLayer + "new.weight", "F32", {1}, "abcd"}}),
              HasSubstr("has no place"));
  EXPECT_THAT(
      with({{"model.layers.2.input_layernorm.weight", "F32", {1}, "abcd"}}),
      HasSubstr("beyond the 2"));
  EXPECT_THAT(with({{kLayer + "self_attn.q_proj.weight",
                     "F32",
                     {3, 1},
                     "abcdabcdabcd"}}),
              HasSubstr("no rows for pairs"));
  EXPECT_THAT(
      with({{kLayer + "self_attn.v_proj.weight", "F8_E4M3", {1, 1}, "a"}}),
      HasSubstr("not converted"));
  EXPECT_THAT(with({{kLayer + "self_attn.v_proj.weight", "F32", {0, 1}, ""}}),
              HasSubstr("is empty"));
  EXPECT_THAT(
      with({{kLayer + "mlp.up_proj.weight", "F32", {1, 1, 1, 1, 1}, "abcd"}}),
      HasSubstr("too many dimensions"));
  const std::string kExpert = kLayer + "block_sparse_moe.experts.";
  EXPECT_THAT(with({{kExpert + "1.w1.weight", "F32", {1, 1}, "abcd"}}),
              HasSubstr("number 0 is not"));
  EXPECT_THAT(with({{kExpert + "0.w1.weight", "F32", {1, 1}, "abcd"},
                    {kExpert + "1.w1.weight", "F32", {1, 2}, "abcdabcd"}}),
              HasSubstr("differs"));
  EXPECT_THAT(with({{"layers.0.input_layernorm.weight", "F32", {1}, "abcd"}}),
              HasSubstr("one of two"));
}

TEST_F(ConvertTest, FoldersThatAreIncompleteAreRefused) {
  EXPECT_TRUE(IsConvertibleFolder(folder_));
  WriteTensors({{"model.layers.0.input_layernorm.weight", "F32", {1}, "abcd"}});
  EXPECT_THAT(Message(), HasSubstr("no embedding"));
  std::filesystem::remove(folder_ + "/model.safetensors");
  EXPECT_THAT(Message(), HasSubstr("neither"));
  EXPECT_FALSE(IsConvertibleFolder(folder_));
  config_.erase("architectures");
  EXPECT_THAT(Message(), HasSubstr("LlamaForCausalLM"));
  EXPECT_FALSE(ConvertFolder("/no/such/folder", folder_ + ".gguf", {}).ok());
}

TEST_F(ConvertTest, TheStampChangesWithAnyFile) {
  const auto stamp = [&] { return FolderStamp(folder_).value(); };
  const std::string before = stamp();
  EXPECT_EQ(stamp(), before);
  WriteFileBytes(folder_ + "/chat_template.jinja", "x");
  const std::string with_template = stamp();
  EXPECT_NE(with_template, before);
  std::filesystem::last_write_time(
      folder_ + "/tokenizer.json",
      std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_NE(stamp(), with_template);
}

}  // namespace
}  // namespace weft
