// The table of known shapes, and the JSON reader.

#include "loaders/model_shape.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

using Keys = std::map<std::string, double>;
using Texts = std::vector<std::string>;

constexpr char kWindow[] = "attention.sliding_window";
constexpr char kAttentionCap[] = "attn_logit_softcapping";
constexpr char kFinalCap[] = "final_logit_softcapping";

// Blocks of Gemma 4 with a window have heads of 256.
Keys Gemma4Keys(double window, double period, Keys more) {
  more.insert({{kWindow, window},
               {"attention.sliding_window_pattern", period},
               {"attention.key_length_swa", 256},
               {"attention.value_length_swa", 256},
               {"rope.dimension_count_swa", 256},
               {kFinalCap, 30}});
  return more;
}

// A number for each block: the last of every `period` has another.
std::vector<int64_t> Periodic(int64_t blocks, int64_t period, int64_t usual,
                              int64_t last) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < blocks; ++i) {
    numbers.push_back(i % period == period - 1 ? last : usual);
  }
  return numbers;
}

// The first so many have one number, the rest another.
std::vector<int64_t> Split(int64_t first, int64_t usual, int64_t rest,
                           int64_t other) {
  std::vector<int64_t> numbers(first, usual);
  numbers.insert(numbers.end(), rest, other);
  return numbers;
}

// Of recurrent blocks: heads of keys (or groups), and heads, all of `size`
// values; `state` keys.
Keys Ssm(double groups, double heads, double size, double state,
         Keys more = {}) {
  more.insert({{"ssm.conv_kernel", 4},
               {"ssm.state_size", state},
               {"ssm.group_count", groups},
               {"ssm.time_step_rank", heads},
               {"ssm.inner_size", heads * size}});
  return more;
}

// `kv_heads` for the blocks of this list, none for the others.
std::vector<int64_t> HeadsOf(int64_t blocks, int64_t kv_heads,
                             const std::vector<int64_t>& with_attention) {
  std::vector<int64_t> heads(blocks, 0);
  for (int64_t block : with_attention) heads[block] = kv_heads;
  return heads;
}

// Nemotron Nano 9B v2: Mamba 2 mixers (M), networks (-), attention (*).
std::map<std::string, std::vector<int64_t>> NemotronBlocks() {
  std::vector<int64_t> widths, heads;
  for (char kind :
       absl::string_view("M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-"
                         "M-M-")) {
    widths.push_back(kind == '-' ? 15680 : 0);
    heads.push_back(kind == '*' ? 8 : 0);
  }
  return {{"feed_forward_length", std::move(widths)},
          {"attention.head_count_kv", std::move(heads)}};
}

std::vector<std::string> Biases() {
  return {"attn_q.bias", "attn_k.bias", "attn_v.bias"};
}

const std::vector<std::string> kGptOssBiases = {
    "ffn_gate_inp.bias", "ffn_gate_exps.bias", "ffn_up_exps.bias",
    "ffn_down_exps.bias"};

Keys GptOssKeys(double experts) {
  return {{"expert_count", experts},
          {"expert_used_count", 4},
          {"expert_feed_forward_length", 2880},
          {kWindow, 128}};
}

// name, architecture, width, layers, FFN, heads, KV heads, head, vocabulary,
// context, RoPE base, epsilon, tied, turned, keys, optional tensors, keys with
// a number for each block
const std::vector<ModelShape>& Shapes() {
  static const auto* shapes = new std::vector<ModelShape>{
      {"tinyllama-1.1b", "llama", 2048, 22, 5632, 32, 4, 64, 32000, 2048, 1e4,
       1e-5, false},
      {"llama-3.2-1b", "llama", 2048, 16, 8192, 32, 8, 64, 128256, 131072, 5e5,
       1e-5, true},
      {"llama-3-8b", "llama", 4096, 32, 14336, 32, 8, 128, 128256, 8192, 5e5,
       1e-5, false},
      {"qwen2-0.5b", "qwen2", 896, 24, 4864, 14, 2, 64, 151936, 32768, 1e6,
       1e-6, true},
      {"qwen1.5-moe-a2.7b", "qwen2moe", 2048, 24, 5632, 16, 16, 128, 151936,
       8192, 1e6, 1e-6, false, 0,
       Keys{{"expert_count", 60},
            {"expert_used_count", 4},
            {"expert_feed_forward_length", 1408},
            {"expert_shared_feed_forward_length", 5632}}},
      {"qwen3-30b-a3b", "qwen3moe", 2048, 48, 6144, 32, 4, 128, 151936, 40960,
       1e6, 1e-6, false, 0,
       Keys{{"expert_count", 128},
            {"expert_used_count", 8},
            {"expert_feed_forward_length", 768}}},
      {"qwen3-235b-a22b", "qwen3moe", 4096, 94, 12288, 64, 4, 128, 151936,
       40960, 1e6, 1e-6, false, 0,
       Keys{{"expert_count", 128},
            {"expert_used_count", 8},
            {"expert_feed_forward_length", 1536}}},
      {"gpt-oss-20b", "gpt-oss", 2880, 24, 2880, 64, 8, 64, 201088, 131072,
       150000, 1e-5, false, 0, GptOssKeys(32), kGptOssBiases},
      {"gpt-oss-120b", "gpt-oss", 2880, 36, 2880, 64, 8, 64, 201088, 131072,
       150000, 1e-5, false, 0, GptOssKeys(128), kGptOssBiases},
      {"olmoe-1b-7b", "olmoe", 2048, 16, 1024, 16, 16, 128, 50304, 4096, 1e4,
       1e-5, false, 0, Keys{{"expert_count", 64}, {"expert_used_count", 8}}},
      {"granite-3.1-3b-a800m", "granitemoe", 1536, 32, 512, 24, 8, 64, 49155,
       131072, 1e7, 1e-6, true, 0,
       Keys{{"expert_count", 40},
            {"expert_used_count", 8},
            {"attention.scale", 0.015625},
            {"embedding_scale", 12},
            {"residual_scale", 0.22},
            {"logit_scale", 6}}},
      {"ernie4.5-21b-a3b",
       "ernie4_5-moe",
       2560,
       28,
       12288,
       20,
       4,
       128,
       103424,
       131072,
       5e5,
       1e-5,
       true,
       0,
       {{"expert_count", 64},
        {"expert_used_count", 6},
        {"expert_feed_forward_length", 1536},
        {"expert_shared_count", 2},
        {"leading_dense_block_count", 1}},
       {"exp_probs_b.bias"}},
      {"hunyuan-a13b", "hunyuan-moe", 4096, 32, 3072, 32, 8, 128, 128167, 32768,
       11158840, 1e-5, true, 0,
       Keys{{"expert_count", 64},
            {"expert_used_count", 8},
            {"expert_feed_forward_length", 3072},
            {"expert_shared_feed_forward_length", 3072}}},
      {"phi-3.5-moe",
       "phimoe",
       4096,
       32,
       6400,
       32,
       8,
       128,
       32064,
       131072,
       1e4,
       1e-5,
       false,
       0,
       {{"expert_count", 16},
        {"expert_used_count", 2},
        {"rope.scaling.original_context_length", 4096}},
       {"output.bias", "rope_factors_long.weight",
        "rope_factors_short.weight"}},
      {"llama-4-scout", "llama4", 5120, 48, 16384, 40, 8, 128, 202048, 10485760,
       5e5, 1e-5, false, 0,
       Keys{{"expert_count", 16},
            {"expert_used_count", 1},
            {"expert_feed_forward_length", 8192},
            {"interleave_moe_layer_step", 1}}},
      // Mixtral's proportions at about a hundredth of its size.
      {"mixtral-small", "llama", 768, 8, 1792, 12, 4, 64, 32000, 32768, 1e6,
       1e-5, false, 0, Keys{{"expert_count", 8}, {"expert_used_count", 2}}},
      {"bert-base", "bert", 768, 12, 3072, 12, 12, 64, 30522, 512, 1e4, 1e-12,
       false, 0, Keys{{"pooling_type", 1}}},
      {"qwen3-0.6b", "qwen3", 1024, 28, 3072, 16, 8, 128, 151936, 40960, 1e6,
       1e-6, true},
      {"smollm-135m", "llama", 576, 30, 1536, 9, 3, 64, 49152, 2048, 1e4, 1e-5,
       true},
      {"gpt2-124m", "gpt2", 768, 12, 3072, 12, 12, 64, 50257, 1024, 1e4, 1e-5,
       true},
      {"stablelm-2-1.6b",
       "stablelm",
       2048,
       24,
       5632,
       32,
       32,
       64,
       100352,
       4096,
       1e4,
       1e-5,
       false,
       16,
       {},
       Biases()},
      {"gemma-2b", "gemma", 2048, 18, 16384, 8, 1, 256, 256000, 8192, 1e4, 1e-6,
       true},
      {"gemma2-2b", "gemma2", 2304, 26, 9216, 8, 4, 256, 256000, 8192, 1e4,
       1e-6, true, 0,
       Keys{{kWindow, 4096}, {kAttentionCap, 50}, {kFinalCap, 30}}},
      {"gemma3-1b", "gemma3", 1152, 26, 6912, 4, 1, 256, 262144, 32768, 1e6,
       1e-6, true, 0, Keys{{kWindow, 512}}},
      {"phi3-mini", "phi3", 3072, 32, 8192, 32, 32, 96, 32064, 4096, 1e4, 1e-5,
       false, 0, Keys{{kWindow, 2047}}},
      {"granite-3-2b", "granite", 2048, 40, 8192, 32, 8, 64, 49155, 4096, 1e4,
       1e-5, true, 0,
       Keys{{"attention.scale", 0.015625},
            {"embedding_scale", 12},
            {"residual_scale", 0.22},
            {"logit_scale", 8}}},
      {"qwen3.5-0.8b", "qwen35", 1024, 24, 3584, 8, 2, 256, 248320, 262144, 1e7,
       1e-6, true, 64, Ssm(16, 16, 128, 128)},
      {"qwen3.5-4b", "qwen35", 2560, 32, 9216, 16, 4, 256, 248320, 262144, 1e7,
       1e-6, true, 64, Ssm(16, 32, 128, 128)},
      {"qwen3.6-35b-a3b", "qwen35moe", 2048, 40, 512, 16, 2, 256, 248320,
       262144, 1e7, 1e-6, false, 64,
       Ssm(16, 32, 128, 128,
           {{"expert_count", 256},
            {"expert_used_count", 8},
            {"expert_feed_forward_length", 512},
            {"expert_shared_feed_forward_length", 512}})},
      {"qwen3-next-80b-a3b", "qwen3next", 2048, 48, 5120, 16, 2, 256, 151936,
       262144, 1e7, 1e-6, false, 64,
       Ssm(16, 32, 128, 128,
           {{"expert_count", 512},
            {"expert_used_count", 10},
            {"expert_feed_forward_length", 512},
            {"expert_shared_feed_forward_length", 512}})},
      {"granite-4-h-tiny",
       "granitehybrid",
       1536,
       40,
       512,
       12,
       4,
       128,
       100352,
       131072,
       1e4,
       1e-5,
       true,
       0,
       Ssm(1, 48, 64, 128,
           {{"expert_count", 64},
            {"expert_used_count", 6},
            {"expert_shared_feed_forward_length", 1024},
            {"rope.scaling.finetuned", 0},
            {"attention.scale", 0.0078125},
            {"embedding_scale", 12},
            {"residual_scale", 0.22},
            {"logit_scale", 6}}),
       {"ssm_norm.weight", "ssm_conv1d.bias"},
       {{"attention.head_count_kv", HeadsOf(40, 4, {5, 15, 25, 35})}}},
      {"nemotron-nano-9b",
       "nemotron_h",
       4480,
       56,
       15680,
       40,
       8,
       128,
       131072,
       131072,
       1e4,
       1e-5,
       false,
       0,
       Ssm(8, 128, 80, 128),
       {"ssm_norm.weight", "ssm_conv1d.bias"},
       NemotronBlocks()},
      {"lfm2-1.2b",
       "lfm2",
       2048,
       16,
       8192,
       32,
       8,
       64,
       65536,
       128000,
       1e6,
       1e-5,
       true,
       0,
       Keys{{"shortconv.l_cache", 3}},
       {},
       {{"attention.head_count_kv", HeadsOf(16, 8, {2, 5, 8, 10, 12, 14})}}},
      {"olmo2-1b", "olmo2", 2048, 16, 8192, 16, 16, 128, 100352, 4096, 5e5,
       1e-6, false},
      {"deepseek-v2-lite", "deepseek2", 2048, 27, 10944, 16, 1, 576, 102400,
       163840, 1e4, 1e-6, false, 64,
       Keys{{"attention.kv_lora_rank", 512},
            {"attention.key_length_mla", 192},
            {"attention.value_length_mla", 128},
            {"leading_dense_block_count", 1},
            {"expert_count", 64},
            {"expert_used_count", 6},
            {"expert_shared_count", 2},
            {"expert_feed_forward_length", 1408},
            {"expert_gating_func", 1}},
       Texts{"attn_k_b.weight"}},
      {"deepseek-v3", "deepseek2", 7168, 61, 18432, 128, 1, 576, 129280, 163840,
       1e4, 1e-6, false, 64,
       Keys{{"attention.q_lora_rank", 1536},
            {"attention.kv_lora_rank", 512},
            {"attention.key_length_mla", 192},
            {"attention.value_length_mla", 128},
            {"leading_dense_block_count", 3},
            {"expert_count", 256},
            {"expert_used_count", 8},
            {"expert_shared_count", 1},
            {"expert_feed_forward_length", 2048},
            {"expert_gating_func", 2},
            {"expert_group_count", 8},
            {"expert_group_used_count", 4},
            {"expert_weights_norm", 1},
            {"expert_weights_scale", 2.5}},
       Texts{"attn_k_b.weight", "exp_probs_b.bias"}},
      {"glm4.5-air", "glm4moe", 4096, 46, 10944, 96, 8, 128, 151552, 131072,
       1e6, 1e-5, false, 64,
       Keys{{"leading_dense_block_count", 1},
            {"expert_count", 128},
            {"expert_used_count", 8},
            {"expert_shared_count", 1},
            {"expert_feed_forward_length", 1408},
            {"expert_gating_func", 2},
            {"expert_weights_norm", 1}},
       Texts{"exp_probs_b.bias"}},
      {"ling-mini-2.0", "bailingmoe2", 2048, 20, 5120, 16, 4, 128, 157184,
       32768, 6e5, 1e-6, false, 64,
       Keys{{"leading_dense_block_count", 1},
            {"expert_count", 256},
            {"expert_used_count", 8},
            {"expert_shared_count", 1},
            {"expert_feed_forward_length", 512},
            {"expert_gating_func", 2},
            {"expert_group_count", 8},
            {"expert_group_used_count", 4},
            {"expert_weights_norm", 1},
            {"expert_weights_scale", 2.5}},
       Texts{"exp_probs_b.bias"}},
      {"minimax-m2", "minimax-m2", 3072, 62, 1536, 48, 8, 128, 200064, 196608,
       5e6, 1e-6, false, 64,
       Keys{{"expert_count", 256},
            {"expert_used_count", 8},
            {"expert_gating_func", 2}},
       Texts{"exp_probs_b.bias"}},
      {"gemma4-31b",
       "gemma4",
       5376,
       60,
       21504,
       32,
       16,
       512,
       262144,
       262144,
       1e6,
       1e-6,
       true,
       0,
       Gemma4Keys(1024, 6, {}),
       {"rope_freqs.weight", "layer_output_scale.weight"},
       {{"attention.head_count_kv", Periodic(60, 6, 16, 4)}}},
      {"gemma4-26b-a4b",
       "gemma4",
       2816,
       30,
       2112,
       16,
       8,
       512,
       262144,
       262144,
       1e6,
       1e-6,
       true,
       0,
       Gemma4Keys(1024, 6,
                  {{"expert_count", 128},
                   {"expert_used_count", 8},
                   {"expert_feed_forward_length", 704}}),
       {"rope_freqs.weight", "layer_output_scale.weight",
        "ffn_gate_up_exps.weight", "ffn_down_exps.scale"},
       {{"attention.head_count_kv", Periodic(30, 6, 8, 2)}}},
      {"gemma4-e4b",
       "gemma4",
       2560,
       42,
       10240,
       8,
       2,
       512,
       262144,
       131072,
       1e6,
       1e-6,
       true,
       0,
       Gemma4Keys(512, 6,
                  {{"attention.shared_kv_layers", 18},
                   {"embedding_length_per_layer_input", 256}}),
       {"attn_v.weight", "rope_freqs.weight", "layer_output_scale.weight"}},
      {"gemma4-e2b",
       "gemma4",
       1536,
       35,
       6144,
       8,
       1,
       512,
       262144,
       131072,
       1e6,
       1e-6,
       true,
       0,
       Gemma4Keys(512, 5,
                  {{"attention.shared_kv_layers", 20},
                   {"embedding_length_per_layer_input", 256}}),
       {"attn_v.weight", "rope_freqs.weight", "layer_output_scale.weight"},
       {{"feed_forward_length", Split(15, 6144, 20, 12288)}}},
      {"ministral-3-3b", "mistral3", 3072, 26, 9216, 32, 8, 128, 131072, 262144,
       1e6, 1e-5, true, 0,
       Keys{{"attention.temperature_scale", 0.1},
            {"rope.scaling.original_context_length", 16384}}},
      {"smollm3-3b", "smollm3", 2048, 36, 11008, 16, 4, 128, 128256, 65536, 5e6,
       1e-6, true},
      {"seed-oss-36b",
       "seed_oss",
       5120,
       64,
       27648,
       80,
       8,
       128,
       155136,
       524288,
       1e7,
       1e-6,
       false,
       0,
       {},
       Biases()},
      {"command-r7b", "cohere2", 4096, 32, 14336, 32, 8, 128, 256000, 8192, 5e4,
       1e-5, true, 0, Keys{{kWindow, 4096}, {"logit_scale", 0.25}}},
      {"exaone4-32b",
       "exaone4",
       5120,
       64,
       27392,
       40,
       8,
       128,
       102400,
       131072,
       1e6,
       1e-5,
       false,
       0,
       Keys{{kWindow, 4096}},
       {"rope_freqs.weight"}},
      {"glm4-9b",
       "glm4",
       4096,
       40,
       13696,
       32,
       2,
       128,
       151552,
       32768,
       1e4,
       1e-5,
       false,
       64,
       {},
       Biases()},
  };
  return *shapes;
}

constexpr int64_t kControlAndByteTokens = 259;
constexpr int64_t kMaxDimension = int64_t{1} << 24;
constexpr int64_t kMaxMatrix = int64_t{1} << 38;
constexpr int64_t kMaxExperts = 1024;
constexpr int64_t kMaxLayers = int64_t{1} << 12;

absl::Status ShapeError(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("bad model shape: ", where, ": ", what));
}

// Reads one JSON object; an unknown key is an error, so that a typing mistake
// cannot pass for a default.
class ShapeReader {
 public:
  ShapeReader(const std::string& path, const Json& json)
      : path_(path), json_(json) {}

  absl::StatusOr<ModelShape> Run() {
    if (!json_.is_object()) {
      return ShapeError(path_,
                        "it holds no JSON object: write { \"key\": ... }");
    }
    shape_.name = path_;
    Text("name", &shape_.name);
    Text("architecture", &shape_.architecture);
    Integer("embedding_length", &shape_.embedding_length);
    Integer("block_count", &shape_.block_count);
    Integer("feed_forward_length", &shape_.feed_forward_length);
    Integer("head_count", &shape_.head_count);
    Integer("head_count_kv", &shape_.head_count_kv);
    Integer("key_length", &shape_.key_length);
    Integer("vocabulary_size", &shape_.vocabulary_size);
    Integer("context_length", &shape_.context_length);
    Number("rope_freq_base", &shape_.rope_freq_base);
    Number("norm_epsilon", &shape_.norm_epsilon);
    Integer("rope_dimension_count", &shape_.rope_dimension_count);
    Keys("keys");
    Texts("optional_tensors", &shape_.optional_tensors);
    if (const Json* value = Take("tied_output")) {
      if (value->is_boolean()) {
        shape_.tied_output = value->get<bool>();
      } else {
        Fail("tied_output", "true or false");
      }
    }
    if (status_.ok() && taken_ != json_.size()) {
      return ShapeError(
          path_, absl::StrCat("it has a key beside ", keys_, ": remove it"));
    }
    if (!status_.ok()) return status_;
    return shape_;
  }

 private:
  const Json* Take(const char* key) {
    absl::StrAppend(&keys_, keys_.empty() ? "" : " ", key);
    const auto found = json_.find(key);
    if (found == json_.end()) return nullptr;
    ++taken_;
    return &*found;
  }
  void Fail(const char* key, const char* expected) {
    if (status_.ok()) {
      status_ = ShapeError(path_, absl::StrCat(key, ": write ", expected));
    }
  }
  void Text(const char* key, std::string* out) {
    const Json* value = Take(key);
    if (value == nullptr) return;
    if (!value->is_string()) return Fail(key, "a string");
    *out = value->get<std::string>();
  }
  void Integer(const char* key, int64_t* out) {
    const Json* value = Take(key);
    if (value == nullptr) return;
    if (!value->is_number_integer()) return Fail(key, "a whole number");
    *out = value->get<int64_t>();
  }
  void Number(const char* key, double* out) {
    const Json* value = Take(key);
    if (value == nullptr) return;
    if (!value->is_number()) return Fail(key, "a number");
    *out = value->get<double>();
  }

  void Keys(const char* key) {
    constexpr char kExpected[] =
        "an object of numbers, or arrays of whole ones for the blocks";
    const Json* value = Take(key);
    if (value == nullptr) return;
    if (!value->is_object()) return Fail(key, kExpected);
    for (const auto& [name, number] : value->items()) {
      if (number.is_number()) {
        shape_.keys[name] = number.get<double>();
        continue;
      }
      if (!number.is_array()) return Fail(key, kExpected);
      for (const Json& one : number) {
        if (!one.is_number_integer()) return Fail(key, kExpected);
        shape_.block_keys[name].push_back(one.get<int64_t>());
      }
    }
  }
  void Texts(const char* key, std::vector<std::string>* out) {
    const Json* value = Take(key);
    if (value == nullptr) return;
    if (!value->is_array()) return Fail(key, "an array of strings");
    for (const Json& text : *value) {
      if (!text.is_string()) return Fail(key, "an array of strings");
      out->push_back(text.get<std::string>());
    }
  }

  const std::string path_;
  const Json& json_;
  ModelShape shape_;
  absl::Status status_;
  std::string keys_;
  size_t taken_ = 0;
};

absl::StatusOr<ModelShape> ReadShape(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": no such file: check the path"));
  }
  std::stringstream text;
  text << file.rdbuf();
  const Json json =
      Json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return ShapeError(path, "it is not JSON: mend its syntax");
  }
  return ShapeReader(path, json).Run();
}

absl::Status CheckRange(absl::string_view where, const char* key, int64_t value,
                        int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return ShapeError(
      where, absl::StrCat(key, " is ", value, ": use ", low, " to ", high));
}

// The numbers that sizes of experts' tensors come from.
absl::Status CheckExperts(absl::string_view where, const ModelShape& shape) {
  const auto found = shape.keys.find("expert_count");
  if (found == shape.keys.end()) return absl::OkStatus();
  const struct {
    const char* key;
    int64_t otherwise, low, high;
  } ranges[] = {
      {"expert_count", 0, 0, kMaxExperts},
      {"expert_used_count", 0, 1, kMaxExperts},
      {"expert_feed_forward_length", shape.feed_forward_length, 1,
       kMaxDimension},
      {"expert_shared_feed_forward_length", 0, 0, kMaxDimension},
  };
  double largest = 1;
  for (const auto& range : ranges) {
    const auto key = shape.keys.find(range.key);
    const double value = key == shape.keys.end()
                             ? static_cast<double>(range.otherwise)
                             : key->second;
    if (!(value >= static_cast<double>(range.low) &&
          value <= static_cast<double>(range.high)) ||
        value != std::floor(value)) {
      return ShapeError(where, absl::StrCat(range.key, " is ", value, ": use ",
                                            range.low, " to ", range.high));
    }
    largest = std::max(largest, value);
  }
  if (shape.keys.at("expert_used_count") > found->second) {
    return ShapeError(where, "expert_used_count is above expert_count");
  }
  if (static_cast<double>(shape.embedding_length) * found->second * largest >
      static_cast<double>(kMaxMatrix)) {
    return ShapeError(where,
                      "experts have more than 2^38 elements: shrink "
                      "them");
  }
  return absl::OkStatus();
}

absl::Status CheckShape(absl::string_view where, ModelShape* shape) {
  if (shape->head_count_kv == 0) shape->head_count_kv = shape->head_count;
  const struct {
    const char* key;
    int64_t value, low, high;
  } ranges[] = {
      {"embedding_length", shape->embedding_length, 1, kMaxDimension},
      {"block_count", shape->block_count, 1, kMaxLayers},
      {"feed_forward_length", shape->feed_forward_length, 1, kMaxDimension},
      {"head_count", shape->head_count, 1, 1 << 12},
      {"head_count_kv", shape->head_count_kv, 1, shape->head_count},
      {"vocabulary_size", shape->vocabulary_size, kControlAndByteTokens,
       kMaxDimension},
      {"context_length", shape->context_length, 1, kMaxDimension},
  };
  for (const auto& range : ranges) {
    const absl::Status status =
        CheckRange(where, range.key, range.value, range.low, range.high);
    if (!status.ok()) return status;
  }
  if (shape->head_count % shape->head_count_kv != 0) {
    return ShapeError(where, "head_count_kv must divide head_count");
  }
  if (shape->key_length == 0) {
    if (shape->embedding_length % shape->head_count != 0) {
      return ShapeError(
          where, "head_count must divide embedding_length: or give key_length");
    }
    shape->key_length = shape->embedding_length / shape->head_count;
  }
  const absl::Status status =
      CheckRange(where, "key_length", shape->key_length, 2, 1 << 12);
  if (!status.ok()) return status;
  if (shape->key_length % 2 != 0) {
    return ShapeError(where, "key_length must be even: RoPE turns pairs");
  }
  if (shape->rope_dimension_count == 0) {
    shape->rope_dimension_count = shape->key_length;
  }
  if (shape->rope_dimension_count < 2 ||
      shape->rope_dimension_count > shape->key_length ||
      shape->rope_dimension_count % 2 != 0) {
    return ShapeError(
        where, "rope_dimension_count must be even and at most key_length");
  }
  if (shape->embedding_length *
          std::max(shape->vocabulary_size,
                   std::max(shape->feed_forward_length,
                            shape->head_count * shape->key_length)) >
      kMaxMatrix) {
    return ShapeError(where, "a matrix has more than 2^38 elements: shrink it");
  }
  WEFT_RETURN_IF_ERROR(CheckExperts(where, *shape));
  for (const auto& [key, numbers] : shape->block_keys) {
    if (static_cast<int64_t>(numbers.size()) != shape->block_count) {
      return ShapeError(where, absl::StrCat(key, " has ", numbers.size(),
                                            " numbers: give one per block"));
    }
    for (int64_t number : numbers) {
      WEFT_RETURN_IF_ERROR(
          CheckRange(where, key.c_str(), number, 0, kMaxDimension));
    }
  }
  if (!(shape->rope_freq_base > 1.0) || !(shape->rope_freq_base < 1e30) ||
      !(shape->norm_epsilon > 0.0) || !(shape->norm_epsilon < 1.0)) {
    return ShapeError(where,
                      "rope_freq_base must be above 1, norm_epsilon small and "
                      "positive");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> ModelShapeNames() {
  std::vector<std::string> names;
  for (const ModelShape& shape : Shapes()) names.push_back(shape.name);
  return names;
}

absl::StatusOr<ModelShape> FindModelShape(absl::string_view name_or_path) {
  ModelShape shape;
  if (absl::EndsWith(name_or_path, ".json")) {
    WEFT_ASSIGN_OR_RETURN(ModelShape read,
                          ReadShape(std::string(name_or_path)));
    shape = std::move(read);
  } else {
    for (const ModelShape& known : Shapes()) {
      if (known.name == name_or_path) shape = known;
    }
    if (shape.name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown shape: \"", name_or_path, "\": use ",
                       absl::StrJoin(ModelShapeNames(), " "),
                       " or a file that ends in .json"));
    }
  }
  const absl::Status status = CheckShape(name_or_path, &shape);
  if (!status.ok()) return status;
  return shape;
}

}  // namespace weft
