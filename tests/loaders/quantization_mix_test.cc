#include "loaders/quantization_mix.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

QuantizationMix Parse(const std::string& word,
                      const std::vector<std::string>& overrides = {}) {
  absl::StatusOr<QuantizationMix> mix = QuantizationMix::Parse(word, overrides);
  EXPECT_TRUE(mix.ok()) << mix.status();
  return *std::move(mix);
}

const MixModel kModel = [] {
  MixModel model;
  model.block_count = 32;
  model.heads_per_kv_head = 2;
  return model;
}();

std::string TypeOf(const QuantizationMix& mix, const std::string& name,
                   const MixModel& model = kModel, int64_t columns = 2048) {
  const std::vector<int64_t> dims = {columns, 64};
  const TypeChoice choice = mix.Choose({name, dims}, model);
  return choice.keep ? "keep" : UpperName(choice.type);
}

struct Expectation {
  const char* word;
  const char* tensor;
  const char* type;
};

TEST(QuantizationMix, FollowsTheUsualRules) {
  const Expectation table[] = {
      {"Q4_0", "blk.0.attn_v.weight", "Q4_0"},
      {"Q4_0", "output.weight", "Q4_0"},
      {"Q4_K", "output.weight", "Q4_K"},
      {"Q4_K_M", "output.weight", "Q6_K"},
      {"Q4_K_M", "token_embd.weight", "Q4_K"},
      {"Q4_K_M", "blk.5.attn_q.weight", "Q4_K"},
      {"Q4_K_M", "blk.0.attn_v.weight", "Q6_K"},
      {"Q4_K_M", "blk.3.ffn_down.weight", "Q6_K"},
      {"Q4_K_M", "blk.4.ffn_down.weight", "Q4_K"},
      {"Q4_K_M", "blk.5.ffn_down.weight", "Q4_K"},
      {"Q4_K_M", "blk.6.ffn_down.weight", "Q6_K"},
      {"Q4_K_M", "blk.27.attn_v.weight", "Q6_K"},
      {"Q4_K_M", "blk.26.attn_v.weight", "Q4_K"},
      {"Q4_K_M", "blk.28.attn_v.weight", "Q6_K"},
      {"Q4_K_M", "blk.29.ffn_down_exps.weight", "Q6_K"},
      {"Q4_K_M", "blk.29.ffn_down_shexp.weight", "Q6_K"},
      {"Q4_K_S", "blk.3.attn_v.weight", "Q5_K"},
      {"Q4_K_S", "blk.4.attn_v.weight", "Q4_K"},
      {"Q4_K_S", "blk.3.ffn_down.weight", "Q5_K"},
      {"Q4_K_S", "blk.4.ffn_down.weight", "Q4_K"},
      {"Q5_K_M", "blk.31.ffn_down.weight", "Q6_K"},
      {"Q5_K_S", "blk.31.ffn_down.weight", "Q5_K"},
      {"Q3_K_M", "blk.1.attn_v.weight", "Q5_K"},
      {"Q3_K_M", "blk.2.attn_v.weight", "Q4_K"},
      {"Q3_K_M", "blk.1.ffn_down.weight", "Q5_K"},
      {"Q3_K_M", "blk.2.ffn_down.weight", "Q4_K"},
      {"Q3_K_M", "blk.9.attn_output.weight", "Q4_K"},
      {"Q3_K_M", "blk.9.ffn_up.weight", "Q3_K"},
      {"Q3_K_L", "blk.9.attn_output.weight", "Q5_K"},
      {"Q3_K_S", "blk.0.attn_v.weight", "Q3_K"},
      {"Q2_K", "blk.9.attn_v.weight", "Q3_K"},
      {"Q2_K", "blk.9.ffn_gate.weight", "Q2_K"},
      {"q6_k", "blk.9.ffn_gate.weight", "Q6_K"},
      {"BF16", "output.weight", "BF16"},
      {"MXFP4", "output.weight", "MXFP4"},
      {"MXFP4_MOE", "blk.3.ffn_up_exps.weight", "MXFP4"},
      {"MXFP4_MOE", "blk.3.ffn_up.weight", "Q8_0"},
      {"MXFP4_MOE", "output.weight", "Q8_0"},
      {"Q2_K_S", "blk.3.ffn_down.weight", "Q4_K"},
      {"Q2_K_S", "blk.4.ffn_down.weight", "Q2_K"},
      {"IQ1_S", "output.weight", "Q5_K"},
      {"IQ1_S", "token_embd.weight", "Q2_K"},
      {"IQ1_S", "blk.9.attn_v.weight", "Q2_K"},
      {"IQ1_S", "blk.9.attn_output.weight", "IQ2_XXS"},
      {"IQ1_M", "blk.9.ffn_up.weight", "IQ1_M"},
      {"IQ2_XXS", "blk.9.attn_output.weight", "IQ2_XXS"},
      {"IQ2_XXS", "blk.3.ffn_down.weight", "Q2_K"},
      {"IQ2_XXS", "blk.4.ffn_down.weight", "IQ2_XXS"},
      // A name that is not what most of it is.
      {"IQ2_S", "blk.9.ffn_up.weight", "IQ2_XS"},
      {"IQ2_M", "blk.9.ffn_up.weight", "IQ2_S"},
      {"IQ2_M", "blk.9.attn_v.weight", "IQ3_S"},
      {"IQ2_M", "token_embd.weight", "IQ3_S"},
      {"IQ3_XXS", "blk.9.attn_k.weight", "IQ2_S"},
      {"IQ3_XXS", "blk.9.attn_v.weight", "IQ3_XXS"},
      {"IQ3_XXS", "blk.9.attn_output.weight", "IQ3_S"},
      {"IQ3_XS", "blk.3.ffn_up.weight", "IQ3_S"},
      {"IQ3_XS", "blk.4.ffn_up.weight", "IQ3_XXS"},
      {"IQ3_XS", "blk.28.ffn_gate.weight", "IQ3_S"},
      {"IQ3_S", "output.weight", "Q6_K"},
      {"IQ3_M", "blk.9.attn_v.weight", "Q4_K"},
      {"IQ3_M", "blk.9.ffn_down.weight", "IQ3_S"},
      {"TQ2_0", "token_embd.weight", "Q4_K"},
      {"TQ1_0", "blk.9.ffn_down.weight", "TQ1_0"},
  };
  for (const Expectation& row : table) {
    EXPECT_EQ(TypeOf(Parse(row.word), row.tensor), row.type)
        << row.word << " " << row.tensor;
  }
}

// A model of which not each block has each tensor.
struct Shape {
  MixMetadata metadata;
  std::vector<std::pair<std::string, std::vector<int64_t>>> tensors;

  void Add(const std::string& name, std::vector<int64_t> dims = {256, 8}) {
    tensors.push_back({name, std::move(dims)});
  }
  void AddBlock(int64_t block, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const bool experts = absl::EndsWith(name, "_exps");
      Add(absl::StrCat("blk.", block, ".", name, ".weight"),
          experts ? std::vector<int64_t>{256, 8, 4}
                  : std::vector<int64_t>{256, 8});
    }
  }
};

Shape Blocks(const char* architecture, int64_t blocks,
             const std::vector<std::string>& names) {
  Shape shape;
  shape.metadata.architecture = architecture;
  shape.metadata.block_count = blocks;
  shape.metadata.heads = 4;
  shape.metadata.kv_heads = 2;
  shape.Add("token_embd.weight");
  shape.Add("output.weight");
  for (int64_t block = 0; block < blocks; ++block) shape.AddBlock(block, names);
  return shape;
}

// What the public quantiser gives to these (llama.cpp, August 2026).
TEST(QuantizationMix, GivesTypesAsThePublicQuantiserDoes) {
  const std::vector<std::string> kDense = {"attn_q", "attn_k", "attn_v",
                                           "attn_output", "ffn_down"};
  Shape hybrid = Blocks("qwen3next", 24, {"ssm_in", "ffn_down"});
  hybrid.metadata.heads = 16;
  for (int64_t block = 3; block < 24; block += 4) {
    hybrid.AddBlock(block, {"attn_q", "attn_k", "attn_v"});
  }
  Shape sparse = Blocks("nemotron_h", 24, {"ssm_in"});
  for (int64_t block : {1, 3, 7, 9, 13, 15, 19, 21}) {
    sparse.AddBlock(block, {"ffn_up", "ffn_down"});
  }
  Shape of_70b = Blocks("llama", 80, kDense);
  Shape of_65b = Blocks("llama", 80, kDense);
  of_65b.metadata.kv_heads = 4;
  Shape qwen2 = Blocks("qwen2", 80, kDense);
  qwen2.metadata.heads = 16;
  Shape eight = Blocks("llama", 16, {"attn_k", "attn_v", "ffn_down_exps"});
  eight.metadata.experts = 8;
  Shape shared = Blocks("deepseek2", 16,
                        {"attn_kv_b", "ffn_down_exps", "ffn_down_shexp",
                         "ffn_gate_up_exps", "attn_k_b"});
  shared.metadata.experts = 64;
  Shape falcon =
      Blocks("falcon", 16, {"attn_qkv", "attn_output", "ffn_up", "ffn_down"});
  Shape narrow = Blocks("llama", 8, {"attn_v"});
  narrow.tensors[0].second = narrow.tensors[1].second = {96, 8};
  Shape tied = Blocks("gemma4", 8, {"attn_v"});
  tied.tensors[1].first = "per_layer_token_embd.weight";
  Shape apart = Blocks("gemma4", 8, {"attn_v"});
  apart.Add("per_layer_token_embd.weight");
  const struct {
    const Shape* shape;
    const char* mix;
    const char* tensor;
    const char* type;
  } table[] = {
      // The first block has no attention; queries may hold gates.
      {&hybrid, "Q2_K", "blk.3.attn_v.weight", "Q4_K"},
      {&hybrid, "IQ2_XXS", "blk.23.attn_v.weight", "Q4_K"},
      // The second and the last of six; more by their place among these.
      {&hybrid, "Q4_K_M", "blk.3.attn_v.weight", "Q4_K"},
      {&hybrid, "Q4_K_M", "blk.7.attn_v.weight", "Q4_K"},
      {&hybrid, "Q4_K_M", "blk.11.attn_v.weight", "Q6_K"},
      {&hybrid, "Q4_K_M", "blk.23.attn_v.weight", "Q6_K"},
      {&hybrid, "Q3_K_M", "blk.7.attn_v.weight", "Q5_K"},
      {&hybrid, "Q3_K_M", "blk.11.attn_v.weight", "Q4_K"},
      {&sparse, "Q4_K_M", "blk.7.ffn_down.weight", "Q6_K"},
      {&sparse, "Q4_K_M", "blk.9.ffn_down.weight", "Q4_K"},
      {&sparse, "Q2_K_S", "blk.7.ffn_down.weight", "Q4_K"},
      {&sparse, "IQ3_XS", "blk.7.ffn_up.weight", "IQ3_S"},
      {&sparse, "IQ3_XS", "blk.9.ffn_up.weight", "IQ3_XXS"},
      {&of_70b, "Q4_K_M", "blk.12.attn_v.weight", "Q6_K"},
      {&of_70b, "Q4_K_M", "blk.11.attn_v.weight", "Q5_K"},
      {&of_70b, "Q3_K_S", "blk.11.attn_v.weight", "Q5_K"},
      {&of_70b, "IQ2_XXS", "blk.11.attn_v.weight", "Q2_K"},
      {&of_70b, "Q4_K_M", "blk.11.attn_k.weight", "Q4_K"},
      {&of_65b, "Q4_K_M", "blk.11.attn_v.weight", "Q4_K"},
      {&qwen2, "Q2_K", "blk.11.attn_v.weight", "Q5_K"},
      {&eight, "IQ3_M", "blk.4.ffn_down_exps.weight", "Q4_K"},
      {&eight, "IQ3_M", "blk.5.ffn_down_exps.weight", "IQ3_S"},
      {&eight, "TQ1_0", "blk.5.attn_k.weight", "Q8_0"},
      {&eight, "TQ2_0", "blk.5.attn_v.weight", "Q8_0"},
      {&eight, "IQ2_M", "blk.5.attn_k.weight", "Q4_K"},
      // Down matrices of experts and of those for all tokens count on.
      {&shared, "IQ2_XXS", "blk.0.ffn_down_shexp.weight", "Q2_K"},
      {&shared, "IQ2_XXS", "blk.1.ffn_down_exps.weight", "IQ2_XXS"},
      {&shared, "Q4_K_M", "blk.1.ffn_down_exps.weight", "Q6_K"},
      {&shared, "Q4_K_M", "blk.2.ffn_down_shexp.weight", "Q4_K"},
      {&shared, "IQ3_XS", "blk.1.ffn_gate_up_exps.weight", "IQ3_S"},
      {&shared, "IQ3_XS", "blk.2.ffn_gate_up_exps.weight", "IQ3_XXS"},
      {&shared, "Q4_K_M", "blk.0.attn_kv_b.weight", "Q6_K"},
      {&shared, "IQ2_M", "blk.5.attn_kv_b.weight", "Q4_K"},
      {&shared, "MXFP4_MOE", "blk.5.ffn_gate_up_exps.weight", "MXFP4"},
      {&shared, "MXFP4_MOE", "blk.5.ffn_down_shexp.weight", "Q8_0"},
      {&shared, "MXFP4_MOE", "blk.5.attn_k_b.weight", "Q8_0"},
      {&falcon, "Q4_K_M", "output.weight", "Q8_0"},
      {&falcon, "Q4_K_M", "blk.0.ffn_down.weight", "Q6_K"},
      {&falcon, "Q4_K_M", "blk.1.ffn_down.weight", "Q5_K"},
      {&falcon, "Q4_K_M", "blk.2.ffn_down.weight", "Q4_K"},
      {&falcon, "Q4_K_M", "blk.0.attn_qkv.weight", "Q6_K"},
      {&falcon, "Q4_K_M", "blk.2.attn_qkv.weight", "Q4_K"},
      {&falcon, "Q4_K_S", "blk.0.ffn_down.weight", "Q4_K"},
      {&falcon, "Q3_K_M", "blk.2.ffn_down.weight", "Q3_K"},
      {&falcon, "Q3_K_M", "blk.2.attn_output.weight", "Q3_K"},
      {&falcon, "Q3_K_L", "blk.2.attn_output.weight", "Q4_K"},
      {&falcon, "Q3_K_L", "blk.2.ffn_down.weight", "Q4_K"},
      {&falcon, "IQ1_S", "blk.2.attn_output.weight", "IQ2_XXS"},
      {&narrow, "IQ1_S", "output.weight", "Q8_0"},
      {&narrow, "IQ3_S", "output.weight", "Q8_0"},
      {&narrow, "Q4_K_M", "output.weight", "Q8_0"},
      {&narrow, "Q2_K", "token_embd.weight", "IQ4_NL"},
      {&tied, "Q4_K_M", "per_layer_token_embd.weight", "Q6_K"},
      {&tied, "IQ2_XXS", "token_embd.weight", "Q5_K"},
      {&apart, "IQ2_XXS", "per_layer_token_embd.weight", "Q2_K"},
      {&apart, "TQ1_0", "per_layer_token_embd.weight", "Q4_K"},
      {&apart, "Q4_K_M", "per_layer_token_embd.weight", "Q4_K"},
  };
  for (const auto& row : table) {
    std::vector<TensorRole> roles;
    for (const auto& [name, dims] : row.shape->tensors) {
      roles.push_back({name, dims});
    }
    const MixModel model = DescribeMixModel(row.shape->metadata, roles);
    const auto found = std::find_if(
        roles.begin(), roles.end(),
        [&](const TensorRole& role) { return role.name == row.tensor; });
    ASSERT_NE(found, roles.end()) << row.tensor;
    EXPECT_EQ(UpperName(Parse(row.mix).Choose(*found, model).type), row.type)
        << row.shape->metadata.architecture << " " << row.mix << " "
        << row.tensor;
  }
}

TEST(QuantizationMix, SaysWhatAFileMostlyIs) {
  EXPECT_EQ(FileTypeOf(DType::kIQ3_XXS), 23u);
  EXPECT_EQ(FileTypeOf(DType::kQ4_K), 14u);
  EXPECT_EQ(FileTypeOf(DType::kQ8_0), 7u);
  EXPECT_EQ(FileTypeOf(DType::kF16), 1u);
}

TEST(QuantizationMix, WantsImportanceForFewBits) {
  const auto wants = [](const char* mix, DType type, const char* tensor) {
    return Parse(mix).NeedsImportanceOf(type, tensor);
  };
  EXPECT_TRUE(wants("IQ3_XXS", DType::kIQ3_XXS, "blk.0.ffn_up.weight"));
  EXPECT_FALSE(wants("IQ3_XXS", DType::kIQ3_XXS, "token_embd.weight"));
  EXPECT_TRUE(wants("IQ1_S", DType::kIQ1_S, "token_embd.weight"));
  EXPECT_TRUE(wants("Q2_K_S", DType::kQ2_K, "blk.0.ffn_up.weight"));
  EXPECT_FALSE(wants("Q2_K", DType::kQ2_K, "blk.0.ffn_up.weight"));
  EXPECT_FALSE(wants("Q2_K_S", DType::kQ6_K, "output.weight"));
  for (DType type :
       {DType::kIQ1_S, DType::kIQ2_S, DType::kIQ3_XXS, DType::kQ2_K}) {
    const DType instead = TypeWithoutImportance(type);
    EXPECT_FALSE(NeedsImportance(instead, "blk.0.ffn_up.weight"));
    EXPECT_FALSE(type == instead);
  }
}

TEST(QuantizationMix, LooksAtTheModel) {
  MixModel model = kModel;
  model.tied_output = true;
  EXPECT_EQ(TypeOf(Parse("Q4_K_M"), "token_embd.weight", model), "Q6_K");
  EXPECT_EQ(TypeOf(Parse("Q4_0"), "token_embd.weight", model), "Q4_0");
  model.heads_per_kv_head = 4;
  EXPECT_EQ(TypeOf(Parse("Q2_K"), "blk.9.attn_v.weight", model), "Q4_K");
}

TEST(QuantizationMix, KeepsAttentionOfEightExpertsFiner) {
  const Expectation table[] = {
      {"Q2_K", "blk.9.attn_v.weight", "Q8_0"},
      {"Q2_K", "blk.9.attn_output.weight", "Q5_K"},
      {"Q3_K_S", "blk.9.attn_k.weight", "Q8_0"},
      {"Q3_K_M", "blk.9.attn_output.weight", "Q5_K"},
      {"Q3_K_L", "blk.9.attn_v.weight", "Q8_0"},
      {"Q3_K_L", "blk.9.attn_output.weight", "Q3_K"},
      {"Q3_K_L", "blk.9.ffn_down.weight", "Q5_K"},
      {"Q4_K_S", "blk.0.attn_v.weight", "Q8_0"},
      {"Q4_K_M", "blk.0.attn_v.weight", "Q8_0"},
      {"Q4_K_M", "blk.5.attn_k.weight", "Q8_0"},
      {"Q4_K_M", "blk.5.attn_output.weight", "Q5_K"},
      {"Q4_K_M", "blk.5.attn_q.weight", "Q4_K"},
      {"Q5_K_S", "blk.5.attn_k.weight", "Q8_0"},
      {"Q5_K_S", "blk.5.attn_output.weight", "Q5_K"},
      {"Q5_K_M", "blk.5.attn_v.weight", "Q8_0"},
      {"IQ3_M", "blk.5.attn_output.weight", "Q5_K"},
      {"Q4_K", "blk.5.attn_v.weight", "Q4_K"},
      {"Q6_K", "blk.5.attn_k.weight", "Q6_K"},
  };
  MixModel model = kModel;
  model.experts = 8;
  for (const Expectation& row : table) {
    EXPECT_EQ(TypeOf(Parse(row.word), row.tensor, model), row.type)
        << row.word << " " << row.tensor;
  }
  model.experts = 16;
  EXPECT_EQ(TypeOf(Parse("Q4_K_M"), "blk.5.attn_k.weight", model), "Q4_K");
}

TEST(QuantizationMix, KeepsWhatIsSmallOrNoMatrix) {
  const QuantizationMix mix = Parse("Q4_K_M", {".*=Q8_0"});
  for (const char* name :
       {"position_embd.weight", "blk.0.ffn_gate_inp.weight",
        "token_types.weight", "blk.0.attn_q.bias", "blk.0.attn_q_norm.weight",
        "blk.0.altup_router.weight", "blk.0.laurel_l.weight",
        "blk.0.indexer.k_proj.weight", "enc.blk.0.attn_rel_b.weight",
        "blk.0.time_mix_w1.weight", "blk.0.time_mix_decay_w2.weight"}) {
    EXPECT_EQ(TypeOf(mix, name), "keep") << name;
  }
  const std::vector<int64_t> vector = {2048};
  EXPECT_TRUE(mix.Choose({"blk.0.attn_norm.weight", vector}, kModel).keep);
  const std::vector<int64_t> column = {2048, 1};
  EXPECT_TRUE(mix.Choose({"blk.0.ffn_gate.weight", column}, kModel).keep);
  EXPECT_EQ(TypeOf(mix, "blk.0.time_mix_output.weight"), "Q8_0");
}

TEST(QuantizationMix, FallsBackToTypesWhoseBlocksFitTheRows) {
  const Expectation table[] = {
      {"Q2_K", "576", "IQ4_NL"}, {"Q3_K", "576", "IQ4_NL"},
      {"Q4_K", "576", "Q5_0"},   {"Q5_K", "576", "Q5_1"},
      {"Q6_K", "576", "Q8_0"},   {"IQ4_XS", "576", "IQ4_NL"},
      {"Q4_0", "576", "Q4_0"},   {"Q4_0", "100", "F16"},
      {"Q6_K", "100", "F16"},    {"IQ4_XS", "1", "F16"},
      {"F32", "1", "F32"},       {"BF16", "7", "BF16"},
  };
  for (const Expectation& row : table) {
    const std::vector<int64_t> dims = {std::stoi(row.tensor), 64};
    const TypeChoice choice =
        Parse(row.word).Choose({"blk.0.ffn_up.weight", dims}, kModel);
    EXPECT_EQ(UpperName(choice.type), row.type) << row.word << row.tensor;
    EXPECT_EQ(UpperName(choice.wanted), row.word);
  }
}

TEST(QuantizationMix, FirstMatchingOverrideWins) {
  const QuantizationMix mix =
      Parse("Q4_K_M", {"blk\\.1\\.ffn=F16", "ffn_down=Q8_0", "*attn_v*=q5_1"});
  EXPECT_EQ(TypeOf(mix, "blk.1.ffn_down.weight"), "F16");
  EXPECT_EQ(TypeOf(mix, "blk.11.ffn_down.weight"), "Q8_0");
  EXPECT_EQ(TypeOf(mix, "blk.0.attn_v.weight"), "Q5_1");
  EXPECT_EQ(TypeOf(mix, "blk.0.attn_k.weight"), "Q4_K");
}

TEST(QuantizationMix, NamesBadWordsAndPatterns) {
  const struct {
    const char* word;
    const char* override_text;
    const char* message;
  } table[] = {
      {"Q4_K_X", nullptr, "unknown type: \"Q4_K_X\": use one of F32"},
      {"", nullptr, "unknown type"},
      {"Q8R", nullptr, "unknown type"},
      {"Q4_0", "attn_v", "write PATTERN=TYPE"},
      {"Q4_0", "attn_v=Q4_K_M", "\"Q4_K_M\""},
      {"Q4_0", "attn_v=q8r", "\"q8r\""},
      {"Q4_0", "attn_v=I32", "\"I32\""},
      {"Q4_0", "=Q8_0", "empty"},
      {"Q4_0", "blk[=Q8_0", "at character"},
  };
  for (const auto& row : table) {
    std::vector<std::string> overrides;
    if (row.override_text != nullptr) overrides.push_back(row.override_text);
    const auto mix = QuantizationMix::Parse(row.word, overrides);
    ASSERT_FALSE(mix.ok()) << row.word;
    EXPECT_THAT(std::string(mix.status().message()), HasSubstr(row.message));
  }
}

TEST(QuantizationMix, NoticesAnOverrideThatMatchesNothing) {
  const QuantizationMix mix = Parse("Q4_0", {"ffn=Q8_0", "atn_v=Q8_0"});
  const std::vector<absl::string_view> names = {"blk.0.attn_v.weight",
                                                "blk.0.ffn_up.weight"};
  EXPECT_THAT(std::string(mix.CheckOverrides(names).message()),
              HasSubstr("no tensor matches \"atn_v\""));
  EXPECT_TRUE(Parse("Q4_0", {"ffn=Q8_0"}).CheckOverrides(names).ok());
}

TEST(NamePattern, ReadsExpressionsAndFilePatterns) {
  const struct {
    const char* pattern;
    const char* name;
    bool matches;
  } table[] = {
      {"ffn_down", "blk.3.ffn_down.weight", true},
      {"blk.*.attn_v.weight", "blk.3.attn_v.weight", true},
      {"blk\\.1\\.", "blk.11.attn_v.weight", false},
      {"blk\\.\\d*\\.attn", "blk.11.attn_v.weight", true},
      {"blk.[0-3]*.attn", "blk.11.attn_v.weight", true},
      {"^attn", "blk.11.attn_v.weight", false},
      {"*attn_v*", "blk.0.attn_v.weight", true},
      {"*attn_v*", "blk.0.attn_k.weight", false},
      {"attn_v*", "blk.0.attn_k.weight", false},
      {"blk.*.attn_v*", "blk.0.attn_k.weight", false},
      {"ffn_*", "blk.0.ffn_up.weight", true},
      {"ffn_*", "blk.0.ffn.weight", false},
      {"blk.?.ffn_*", "blk.10.ffn_up.weight", false},
      // One layer is that layer alone.
      {"blk.1.*", "blk.1.ffn_up.weight", true},
      {"blk.1.*", "blk.10.ffn_up.weight", false},
      {"blk.1.*", "blk.11.ffn_up.weight", false},
      {"blk.1.*", "blk.21.ffn_up.weight", false},
      {"blk.0.*", "blk.0.attn_q.weight", true},
      {"blk.0.*", "blk.10.attn_q.weight", false},
      {"blk.1.ffn", "blk.1.ffn_up.weight", true},
      {"blk.1.ffn", "blk.1.attn_q.weight", false},
      {"blk.1.", "blk.12.attn_q.weight", false},
      {"blk.[0-3].*", "blk.3.attn_q.weight", true},
      {"blk.[0-3].*", "blk.30.attn_q.weight", false},
      {"blk.(1|12).*down", "blk.12.ffn_down.weight", true},
      {"blk.(1|12).*down", "blk.1.ffn_down.weight", true},
      {"blk.(1|12).*down", "blk.11.ffn_down.weight", false},
      {"blk.(1|12).*down", "blk.1.ffn_up.weight", false},
      {"blk.(0.attn|1.ffn)_", "blk.1.ffn_up.weight", true},
      {"output|blk.1.*", "output.weight", true},
      {"output|blk.1.*", "blk.1.ffn_up.weight", true},
      {"blk.", "blk.7.ffn_up.weight", true},
      {"blk.1", "blk.12.ffn_up.weight", true},
  };
  for (const auto& row : table) {
    const auto pattern = NamePattern::Parse(row.pattern);
    ASSERT_TRUE(pattern.ok()) << pattern.status();
    EXPECT_EQ(pattern->Matches(row.name), row.matches)
        << row.pattern << " " << row.name;
  }
}

TEST(NamePattern, GivesUpOnPatternsThatExplode) {
  const auto pattern = NamePattern::Parse("([a]*)*([a]*)*([a]*)*b");
  ASSERT_TRUE(pattern.ok());
  EXPECT_FALSE(pattern->Matches(std::string(200, 'a')));
}

}  // namespace
}  // namespace weft
