// Models that are not whole, or whose tensors hold what cannot be: none may
// load as another model.
#include "loaders/architectures/architecture.h"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/gguf_writer.h"
#include "loaders/synthesize.h"
#include "ops/ops.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A file of three blocks; `more` goes into its shape.
std::string Synthesize(const std::string& architecture,
                       const std::string& more) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/", getpid(), "-", architecture);
  std::ofstream(path + ".json")
      << R"({"architecture": ")" << architecture
      << R"(", "embedding_length": 64, "block_count": 3,
           "feed_forward_length": 64, "head_count": 2, "head_count_kv": 2,
           "vocabulary_size": 300, "context_length": 1024)"
      << more << "}";
  SynthesizeOptions options;
  options.shape = path + ".json";
  options.type = "F32";
  const auto report = SynthesizeModel(options, path + ".gguf");
  EXPECT_TRUE(report.ok()) << report.status();
  return path + ".gguf";
}

struct Change {
  std::string without = "";  // a tensor, or all of this name in blocks
  std::string factors = "";  // a tensor
  float factor = 0;          // what all of it is then
  std::string with = "";     // a tensor of two numbers
  std::function<void(GgufWriter*)> keys = [](GgufWriter*) {};
};

absl::StatusOr<LoadedGraph> Build(const std::string& path, const Change& change,
                                  int64_t context = 0) {
  const auto source = GgufFile::Open(path);
  if (!source.ok()) return source.status();
  GgufWriter writer;
  writer.CopyMetadata(*source);
  change.keys(&writer);
  std::vector<uint8_t> changed;
  bool found = change.without.empty() && change.factors.empty();
  for (const GgufTensor& tensor : source->tensors()) {
    const bool left_out =
        tensor.name == change.without ||
        (!change.without.empty() &&
         absl::EndsWith(tensor.name, absl::StrCat(".", change.without)));
    found |= left_out || tensor.name == change.factors;
    if (left_out) continue;
    if (tensor.name != change.factors) {
      writer.AddTensor(tensor.name, tensor.type, tensor.dims, tensor.data);
      continue;
    }
    changed.resize(tensor.data.size());
    for (size_t at = 0; at < changed.size(); at += sizeof(float)) {
      std::memcpy(&changed[at], &change.factor, sizeof(float));
    }
    writer.AddTensor(tensor.name, tensor.type, tensor.dims, changed);
  }
  EXPECT_TRUE(found) << change.without << change.factors;
  const std::vector<uint8_t> zeros(8);
  if (!change.with.empty()) {
    writer.AddTensor(change.with, DType::kF32, {2}, zeros);
  }
  const std::string result = path + ".changed";
  if (absl::Status s = writer.WriteTo(result); !s.ok()) return s;
  const auto file = GgufFile::Open(result);
  unlink(result.c_str());
  if (!file.ok()) return file.status();
  GraphOptions options;
  options.context = context;
  return BuildGraph(*file, options);
}

absl::Status Load(const std::string& path, const Change& change,
                  int64_t context = 0) {
  return Build(path, change, context).status();
}

std::string Without(const std::string& path, const std::string& tensor,
                    int64_t context = 0) {
  Change change;
  change.without = tensor;
  return std::string(Load(path, change, context).message());
}

constexpr char kLongPhi3[] = R"(,
    "keys": {"rope.scaling.original_context_length": 128},
    "optional_tensors": ["rope_factors_long.weight",
                         "rope_factors_short.weight"])";

TEST(LongRope, NeedsBothSetsOfFactorsInEveryContext) {
  const std::string path = Synthesize("phi3", kLongPhi3);
  for (int64_t context : {64, 1024}) {
    EXPECT_TRUE(Load(path, {}, context).ok());
    for (const char* tensor :
         {"rope_factors_long.weight", "rope_factors_short.weight"}) {
      EXPECT_THAT(Without(path, tensor, context),
                  HasSubstr(absl::StrCat("missing tensor '", tensor, "'")));
    }
  }
}

TEST(LongRope, NeedsFactorsWhenTheMetadataSaysSo) {
  Change change;
  change.keys = [](GgufWriter* writer) {
    writer->SetString("phi3.rope.scaling.type", "longrope");
  };
  const std::string path = Synthesize("phi3", "");
  EXPECT_TRUE(Load(path, {}).ok());
  EXPECT_THAT(std::string(Load(path, change).message()),
              HasSubstr("missing tensor 'rope_factors_long.weight'"));
  const absl::Status whole = Load(Synthesize("phi3", kLongPhi3), change);
  EXPECT_TRUE(whole.ok()) << whole;
}

TEST(LongRope, NeedsFactorsWhenTheContextWasShorterAndNothingElseStretchesIt) {
  const std::string path = Synthesize("phi3", "");
  Change change;
  change.keys = [](GgufWriter* writer) {
    writer->SetUint32("phi3.rope.scaling.original_context_length", 128);
  };
  EXPECT_THAT(std::string(Load(path, change).message()),
              HasSubstr("missing tensor 'rope_factors_long.weight'"));
  change.keys = [](GgufWriter* writer) {
    writer->SetUint32("phi3.rope.scaling.original_context_length", 128);
    writer->SetString("phi3.rope.scaling.type", "yarn");
    writer->SetFloat32("phi3.rope.scaling.factor", 8);
  };
  const absl::Status stretched = Load(path, change);
  EXPECT_TRUE(stretched.ok()) << stretched;
}

TEST(RopeFactors, AreAboveZeroAndNotInfinite) {
  const std::string phi3 = Synthesize("phi3", kLongPhi3);
  const std::string llama =
      Synthesize("llama", R"(, "optional_tensors": ["rope_freqs.weight"])");
  for (const auto& [path, tensor] :
       {std::pair<std::string, std::string>{phi3, "rope_factors_long.weight"},
        {phi3, "rope_factors_short.weight"},
        {llama, "rope_freqs.weight"}}) {
    Change change;
    change.factors = tensor;
    for (float factor :
         {0.0f, -0.0f, -1.0f, 1e-40f, std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      change.factor = factor;
      EXPECT_THAT(std::string(Load(path, change).message()),
                  AllOf(HasSubstr(absl::StrCat("bad tensor '", tensor, "'")),
                        HasSubstr("above 0")))
          << factor;
    }
    change.factor = 8;
    EXPECT_TRUE(Load(path, change).ok());
  }
}

// One block that lacks what the others have, whichever it is.
TEST(OptionalTensors, AreInAllBlocksOrInNone) {
  struct Case {
    const char* architecture;
    const char* more;
    const char* tensor;
  };
  for (const Case& c :
       {Case{"llama", "", "attn_q.bias"}, Case{"llama", "", "ffn_down.bias"},
        Case{"bert", "", "attn_q.bias"}, Case{"stablelm", "", "attn_v.bias"},
        Case{"stablelm", R"(, "keys": {"use_parallel_residual": 1})",
             "attn_q_norm.weight"}}) {
    const std::string path = Synthesize(
        c.architecture, absl::StrCat(c.more, R"(, "optional_tensors": [".)",
                                     c.tensor, R"("])"));
    EXPECT_TRUE(Load(path, {}).ok()) << c.architecture;
    for (int block : {0, 1, 2}) {
      const std::string tensor = absl::StrCat("blk.", block, ".", c.tensor);
      EXPECT_THAT(Without(path, tensor),
                  HasSubstr(absl::StrCat("missing tensor '", tensor, "'")));
    }
  }
}

constexpr char kGemma4E[] = R"(, "key_length": 32, "keys": {
    "attention.sliding_window": 9, "attention.sliding_window_pattern": [1, 0, 1],
    "attention.key_length_swa": 16, "attention.value_length_swa": 16,
    "attention.shared_kv_layers": 1, "embedding_length_per_layer_input": 8},
    "optional_tensors": ["attn_v.weight", "layer_output_scale.weight"])";

TEST(Gemma4, IsWholeOrRefused) {
  const std::string path = Synthesize("gemma4", kGemma4E);
  const absl::Status whole = Load(path, {});
  EXPECT_TRUE(whole.ok()) << whole;
  for (const char* tensor :
       {"blk.1.layer_output_scale.weight", "per_layer_token_embd.weight",
        "per_layer_proj_norm.weight", "blk.0.attn_v.weight",
        "blk.0.attn_k.weight", "blk.2.inp_gate.weight"}) {
    EXPECT_THAT(Without(path, tensor),
                HasSubstr(absl::StrCat("missing tensor '", tensor, "'")));
  }
}

// Without the key the last block has its own, and what it shares is not read.
TEST(Gemma4, BlocksThatShareACacheMayHaveWhatTheyDoNotRead) {
  std::string own = kGemma4E;
  own.replace(own.find("_layers\": 1"), 11, "_layers\": 0");
  Change change;
  change.keys = [](GgufWriter* writer) {
    writer->SetUint32("gemma4.attention.shared_kv_layers", 1);
  };
  const absl::Status status = Load(Synthesize("gemma4", own), change);
  EXPECT_TRUE(status.ok()) << status;
}

// Each of several experts would have an input of its own.
TEST(Llama4, ChoosesOneExpertOrIsRefused) {
  const std::string path = Synthesize(
      "llama4", R"(, "keys": {"expert_count": 4, "expert_used_count": 1,
                  "expert_feed_forward_length": 64})");
  EXPECT_TRUE(Load(path, {}).ok());
  Change change;
  change.keys = [](GgufWriter* writer) {
    writer->SetUint32("llama4.expert_used_count", 2);
  };
  const absl::Status status = Load(path, change);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("not supported: llama4.expert_used_count is 2"));
}

constexpr char kMixture[] = R"(, "keys": {"expert_count": 4,
    "expert_used_count": 2, "expert_feed_forward_length": 64})";
constexpr char kBiased[] = R"(, "keys": {"expert_count": 4,
    "expert_used_count": 2, "expert_feed_forward_length": 64},
    "optional_tensors": ["exp_probs_b.bias"])";
constexpr char kLatent[] = R"(, "head_count_kv": 1, "key_length": 24,
    "rope_dimension_count": 8, "keys": {"attention.kv_lora_rank": 16,
    "attention.key_length_mla": 16, "attention.value_length_mla": 8,
    "expert_count": 4, "expert_used_count": 2,
    "expert_feed_forward_length": 64})";
constexpr char kLatentBiased[] = R"(, "head_count_kv": 1, "key_length": 24,
    "rope_dimension_count": 8, "keys": {"attention.kv_lora_rank": 16,
    "attention.key_length_mla": 16, "attention.value_length_mla": 8,
    "expert_count": 4, "expert_used_count": 2,
    "expert_feed_forward_length": 64},
    "optional_tensors": ["exp_probs_b.bias"])";

// What a model cannot do without, one key taken away or set to what cannot be:
// refused by the name of the key.
TEST(Refusals, NameTheKeyThatAFamilyCannotDoWithout) {
  constexpr double kGone = -1;
  const struct {
    const char* architecture;
    const char* more;
    const char* key;
    double value;
    const char* says;
  } cases[] = {
      {"gemma4", kGemma4E, "attention.shared_kv_layers", 3,
       "is 3, expected 0 to 2"},
      {"gemma4", kGemma4E, "attention.shared_kv_layers", 99,
       "is 99, expected 0 to 2"},
      {"gemma4", kGemma4E, "attention.shared_kv_layers", 2,
       "is 2, expected so few that block 1 can share the keys of an earlier "
       "one without a window"},
      {"gemma4", kGemma4E, "attention.sliding_window", kGone, "is not there"},
      {"gemma4", kGemma4E, "attention.sliding_window", 0, "is 0"},
      {"gemma4", kGemma4E, "attention.sliding_window_pattern", kGone,
       "is not there"},
      {"gemma2", "", "attention.sliding_window", 0, "is 0"},
      {"cohere2", "", "attention.sliding_window", 0, "is 0"},
      {"cohere2", "", "logit_scale", 0, "is 0"},
      {"gpt-oss", kMixture, "attention.sliding_window", 0, "is 0"},
      {"gpt-oss", kMixture, "expert_gating_func", 1, "is 1, expected 3"},
      {"phimoe", kMixture, "expert_gating_func", 1, "is 1, expected 0"},
      {"phimoe", kMixture, "expert_weights_norm", 1, "is 1, expected false"},
      {"granite", R"(, "keys": {"logit_scale": 8})", "logit_scale", kGone,
       "is not there"},
      {"qwen3moe", kMixture, "expert_used_count", kGone, "is not there"},
      {"glm4", "", "rope.dimension_count", kGone, "is not there"},
      {"glm4moe", kMixture, "rope.dimension_count", kGone, "is not there"},
      {"minimax-m2", kMixture, "rope.dimension_count", kGone, "is not there"},
      {"stablelm", "", "rope.dimension_count", kGone, "is not there"},
  };
  for (const auto& c : cases) {
    const std::string path = Synthesize(c.architecture, c.more);
    const absl::Status whole = Load(path, {});
    EXPECT_TRUE(whole.ok()) << whole;
    const std::string key = absl::StrCat(c.architecture, ".", c.key);
    Change change;
    change.keys = [&](GgufWriter* writer) {
      if (c.value == kGone) return writer->Remove(key);
      writer->SetUint32(key, static_cast<uint32_t>(c.value));
    };
    EXPECT_THAT(std::string(Load(path, change).message()),
                HasSubstr(absl::StrCat(key, " ", c.says)));
  }
}

TEST(Granite, HybridsMayDoWithoutNumbersOfTheirOwn) {
  const absl::Status status =
      Load(Synthesize("granitehybrid", R"(, "keys": {"ssm.conv_kernel": 4,
          "ssm.group_count": 1, "ssm.inner_size": 128, "ssm.state_size": 16,
          "ssm.time_step_rank": 4, "attention.head_count_kv": [0, 2, 0]})"),
           {});
  EXPECT_TRUE(status.ok()) << status;
}

// The same of tensors, in all blocks at once.
TEST(Refusals, NameTheTensorThatAFamilyCannotDoWithout) {
  const struct {
    const char* architecture;
    const char* more;
    const char* tensor;
  } cases[] = {
      {"gpt-oss", kMixture, "output.weight"},
      {"glm4moe", kMixture, "output.weight"},
      {"bailingmoe2", kMixture, "output.weight"},
      {"dots1", kMixture, "output.weight"},
      {"minimax-m2", kMixture, "output.weight"},
      {"olmoe", kMixture, "output.weight"},
      {"qwen2moe", kMixture, "output.weight"},
      {"olmo2", "", "output.weight"},
      {"stablelm", "", "output.weight"},
      {"phimoe", kMixture, "output.bias"},
      {"phimoe", kMixture, "output.weight"},
      {"gpt-oss", kMixture, "ffn_gate_inp.bias"},
      {"gpt-oss", kMixture, "ffn_gate_exps.bias"},
      {"gpt-oss", kMixture, "ffn_up_exps.bias"},
      {"gpt-oss", kMixture, "ffn_down_exps.bias"},
      {"glm4moe", kMixture, "exp_probs_b.bias"},
      {"minimax-m2", kMixture, "exp_probs_b.bias"},
      {"gemma4", kGemma4E, "rope_freqs.weight"},
  };
  for (const auto& c : cases) {
    const std::string path = Synthesize(c.architecture, c.more);
    const absl::Status whole = Load(path, {});
    EXPECT_TRUE(whole.ok()) << whole;
    const std::string message = Without(path, c.tensor);
    EXPECT_THAT(message, AllOf(HasSubstr("missing tensor '"),
                               HasSubstr(absl::StrCat(c.tensor, "'"))))
        << c.architecture;
  }
}

// Families of which some models share the embedding.
TEST(Output, IsTheEmbeddingWherePublishedModelsHaveItSo) {
  for (const auto& [architecture, more] :
       {std::pair<const char*, const char*>{"llama", ""},
        {"qwen3moe", kMixture},
        {"deepseek2", kLatent},
        {"ernie4_5-moe", kMixture}}) {
    EXPECT_EQ(Without(Synthesize(architecture, more), "output.weight"), "");
  }
}

// What a router does: how scores come of its logits, and what becomes of the
// weights of the chosen.
std::string RouterOf(const Graph& graph) {
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!node.Is(kTopKOp)) continue;
    const auto choice = node.attributes.As<TopKAttributes>();
    const NodeId before = graph.value(node.inputs[0]).producer;
    std::string text = graph.node(before).op->name;
    if (choice.normalize) absl::StrAppend(&text, ", normalized");
    if (choice.normalize && !(choice.least_sum > 0)) return "0 / 0";
    if (choice.groups > 1) absl::StrAppend(&text, ", best ", choice.group_best);
    return text;
  }
  return "none";
}

TEST(Router, IsThePublishedOneWhereFilesDoNotSay) {
  const struct {
    const char* architecture;
    const char* more;
    const char* key;  // and its number, or none
    uint32_t value;
    const char* router;
  } cases[] = {
      {"dots1", kMixture, "", 0, "sigmoid, normalized"},
      {"dots1", kMixture, "expert_gating_func", 0, "sigmoid, normalized"},
      {"dots1", kMixture, "expert_gating_func", 1, "softmax, normalized"},
      {"dots1", kMixture, "expert_weights_norm", 0, "sigmoid"},
      {"bailingmoe2", kMixture, "", 0, "sigmoid, normalized"},
      {"glm4moe", kMixture, "", 0, "sigmoid, normalized"},
      {"glm4moe", kMixture, "expert_gating_func", 1, "softmax, normalized"},
      {"glm4moe", kMixture, "expert_gating_func", 3, "add"},
      {"minimax-m2", kMixture, "", 0, "sigmoid, normalized"},
      {"minimax-m2", kMixture, "expert_gating_func", 1, "softmax, normalized"},
      {"deepseek2", kLatent, "", 0, "softmax"},
      {"deepseek2", kLatent, "expert_gating_func", 2, "sigmoid, normalized"},
      {"deepseek2", kLatentBiased, "", 0, "sigmoid, normalized"},
      {"deepseek2", kLatentBiased, "expert_gating_func", 1, "softmax"},
      {"qwen3moe", kMixture, "", 0, "softmax, normalized"},
      {"qwen3moe", kMixture, "expert_weights_norm", 0, "softmax"},
      {"olmoe", kMixture, "", 0, "softmax"},
      {"ernie4_5-moe", kBiased, "", 0, "softmax, normalized"},
      {"hunyuan-moe", kMixture, "", 0, "softmax, normalized"},
      {"gpt-oss", kMixture, "", 0, "add"},
      {"gpt-oss", kMixture, "expert_gating_func", 3, "add"},
  };
  for (const auto& c : cases) {
    const bool biased_logits = std::string(c.router) == "add";
    std::string more = c.more;
    if (biased_logits) {
      more += R"(, "optional_tensors": ["ffn_gate_inp.bias"])";
    }
    Change change;
    change.keys = [&](GgufWriter* writer) {
      if (*c.key == 0) return;
      writer->SetUint32(absl::StrCat(c.architecture, ".", c.key), c.value);
    };
    const auto loaded = Build(Synthesize(c.architecture, more), change);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(RouterOf(loaded->graph), c.router)
        << c.architecture << " " << c.key << " " << c.value;
  }
}

// V2 knows a group by its best expert, V3 by its best two.
TEST(Router, ComparesGroupsAsTheFamilyDoes) {
  const std::string path = Synthesize("deepseek2", kLatent);
  for (const auto& [gating, router] :
       {std::pair<uint32_t, const char*>{1, "softmax, best 1"},
        {2, "sigmoid, normalized, best 2"}}) {
    Change change;
    change.keys = [gating = gating](GgufWriter* writer) {
      writer->SetUint32("deepseek2.expert_gating_func", gating);
      writer->SetUint32("deepseek2.expert_group_count", 2);
      writer->SetUint32("deepseek2.expert_group_used_count", 1);
    };
    const auto loaded = Build(path, change);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(RouterOf(loaded->graph), router);
  }
}

TEST(NextTokenBlocks, AreThoseThatTheMetadataCounts) {
  const std::string path = Synthesize("glm4moe", kMixture);
  const auto load = [&](uint32_t count, const char* tensor) {
    Change change;
    change.with = tensor;
    change.keys = [&](GgufWriter* writer) {
      writer->SetUint32("glm4moe.nextn_predict_layers", count);
    };
    return std::string(Load(path, change).message());
  };
  constexpr char kKey[] = "glm4moe.nextn_predict_layers is ";
  EXPECT_EQ(load(0, ""), "");
  EXPECT_EQ(load(1, "blk.2.nextn.enorm.weight"), "");
  EXPECT_THAT(load(1, ""), AllOf(HasSubstr(absl::StrCat(kKey, 1)),
                                 HasSubstr("block 2 has no 'blk.2.nextn.*'")));
  EXPECT_THAT(load(2, "blk.2.nextn.enorm.weight"),
              HasSubstr("block 1 has no 'blk.1.nextn.*'"));
  for (const char* tensor :
       {"blk.2.nextn.enorm.weight", "blk.0.nextn.enorm.weight"}) {
    EXPECT_THAT(load(0, tensor), AllOf(HasSubstr(absl::StrCat(kKey, 0)),
                                       HasSubstr(" has 'blk.")));
  }
  // Left out of the file altogether.
  const absl::Status status =
      Load(Synthesize("glm4moe", R"(, "keys": {"expert_count": 4,
          "expert_used_count": 2, "nextn_predict_layers": 1})"),
           {});
  EXPECT_TRUE(status.ok()) << status;
}

// Windows of the blocks, where the file says nothing of them.
TEST(SlidingWindow, IsThePublishedOneWhereFilesDoNotSay) {
  const struct {
    const char* architecture;
    const char* more;
    std::vector<int64_t> windows;
  } cases[] = {
      {"gpt-oss", kMixture, {128, 0, 128}},
      {"cohere2", R"(, "context_length": 8192)", {4096, 4096, 4096}},
      {"gemma2", R"(, "context_length": 8192)", {4096, 0, 4096}},
      {"exaone4", R"(, "context_length": 8192)", {0, 0, 0}},
  };
  for (const auto& c : cases) {
    const auto loaded = Build(Synthesize(c.architecture, c.more), {});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    for (size_t i = 0; i < c.windows.size(); ++i) {
      EXPECT_EQ(loaded->config.WindowOf(i), c.windows[i]) << c.architecture;
    }
  }
  const auto large = Build(
      Synthesize("exaone4", R"(, "context_length": 8192, "block_count": 64)"),
      {});
  ASSERT_TRUE(large.ok()) << large.status();
  for (int64_t block = 0; block < 64; ++block) {
    EXPECT_EQ(large->config.WindowOf(block), block % 4 == 3 ? 0 : 4096);
  }
}

TEST(SlidingWindow, ThatNoTextReachesIsNone) {
  const std::string path = Synthesize("phi3", "");
  for (uint64_t window : {uint64_t{1024}, uint64_t{4294967295},
                          std::numeric_limits<uint64_t>::max()}) {
    Change change;
    change.keys = [window](GgufWriter* writer) {
      writer->SetUint64("phi3.attention.sliding_window", window);
      writer->SetUint64("phi3.context_length",
                        window == 1024 ? 1024 : uint64_t{1} << 40);
    };
    const absl::Status status = Load(path, change);
    EXPECT_TRUE(status.ok()) << status;
  }
}

}  // namespace
}  // namespace weft
