#include "loaders/convert/checkpoint_config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "loaders/gguf_value.h"

namespace weft {
namespace {

using nlohmann::json;

// Keys that change results wherever a model has them, and values that they may
// have where nobody obeys them.
struct ChangesResult {
  absl::string_view key;
  const char* neutral;  // JSON, a list of values
};
constexpr ChangesResult kChangesResult[] = {
    {"alibi", "[false]"},
    {"attention_multiplier", "[1, 1.0]"},
    {"attn_logit_softcapping", "[0]"},
    {"attn_logit_cap", "[0]"},
    {"clip_qkv", "[]"},
    {"decoder_sparse_step", "[1]"},
    {"embedding_multiplier", "[1, 1.0]"},
    {"final_logit_softcapping", "[0]"},
    {"first_k_dense_replace", "[0]"},
    {"head_dim", "[]"},
    {"hidden_act", "[]"},
    {"hidden_activation", "[]"},
    {"is_causal", "[true]"},
    {"is_decoder", "[true, false]"},
    {"kv_lora_rank", "[]"},
    {"layer_types", "[]"},
    {"llama_4_scaling_beta", "[0]"},
    {"logits_scaling", "[1, 1.0]"},
    {"logit_scale", "[1, 1.0]"},
    {"moe_layer_freq", "[1]"},
    {"mlp_only_layers", "[[]]"},
    {"moe_intermediate_size", "[]"},
    {"n_group", "[1]"},
    {"n_routed_experts", "[0]"},
    {"n_shared_experts", "[0]"},
    {"no_rope_layers", "[[]]"},
    {"norm_topk_prob", "[]"},
    {"num_experts", "[0]"},
    {"num_local_experts", "[0]"},
    {"num_nextn_predict_layers", "[0]"},
    {"parallel_attn", "[false]"},
    {"parallel_residual", "[false]"},
    {"partial_rotary_factor", "[1, 1.0]"},
    {"position_embedding_type", "[\"absolute\", \"rope\"]"},
    {"qk_layernorm", "[false]"},
    {"quantization_config", "[]"},
    {"query_pre_attn_scalar", "[]"},
    {"residual_multiplier", "[1, 1.0]"},
    {"rope_local_base_freq", "[]"},
    {"rope_parameters", "[]"},
    {"rope_scaling", "[]"},
    {"rope_theta", "[]"},
    {"rotary_pct", "[1, 1.0]"},
    {"routed_scaling_factor", "[1, 1.0]"},
    {"scoring_func", "[]"},
    {"shared_expert_intermediate_size", "[]"},
    {"shared_intermediate_size", "[0]"},
    {"sliding_window", "[]"},
    {"sliding_window_pattern", "[]"},
    {"swiglu_limit", "[]"},
    {"topk_group", "[1]"},
    {"use_bidirectional_attention", "[false]"},
    {"use_parallel_residual", "[false]"},
    {"use_sliding_window", "[false]"},
    // Of the object rope_parameters.
    {"rope_type", "[\"default\"]"},
    {"type", "[\"default\"]"},
    {"factor", "[1, 1.0]"},
    {"attention_factor", "[1, 1.0]"},
    {"beta_fast", "[]"},
    {"beta_slow", "[]"},
    {"long_factor", "[]"},
    {"short_factor", "[]"},
    {"mscale", "[]"},
    {"mscale_all_dim", "[]"},
    {"mrope_section", "[]"},
    {"truncate", "[true]"},
};

// What says how a model is trained, stored or run, repeats what tensors say, or
// is for others to know.
constexpr absl::string_view kChangesNothing[] = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_flash_attn_2_enabled",
    "_name_or_path",
    "_sliding_window_pattern",
    "architectures",
    "attention_bias",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_implementation",
    "attn_pdrop",
    "auto_map",
    "boi_token_index",
    "bos_token_id",
    "cache_implementation",
    "classifier_dropout",
    "cls_token_id",
    "chunk_size_feed_forward",
    "decoder_start_token_id",
    "dtype",
    "embd_pdrop",
    "eoi_token_index",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "image_token_index",
    "initializer_factor",
    "initializer_range",
    "is_encoder_decoder",
    "is_llama_config",
    "keys_to_ignore_at_inference",
    "label2id",
    "max_length",
    "max_window_layers",
    "mlp_bias",
    "mm_tokens_per_image",
    "model_type",
    "num_labels",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_router_logits",
    "pad_token_id",
    "pretraining_tp",
    "problem_type",
    "resid_pdrop",
    "return_dict",
    "rope_interleaved",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "sep_token_id",
    "sliding_window_size",
    "text_config",
    "tie_word_embeddings",
    "tokenizer_class",
    "torch_dtype",
    "transformers_version",
    "transformers.js_config",
    "unsloth_fixed",
    "unsloth_version",
    "use_cache",
    "use_flash_attn",
    "use_mrope",
    "use_qkv_bias",
    "vision_config",
    "vocab_size",
};

absl::string_view LastPart(absl::string_view key) {
  const size_t dot = key.rfind('.');
  return dot == absl::string_view::npos ? key : key.substr(dot + 1);
}

}  // namespace

CheckpointConfig::CheckpointConfig(json root, std::string path)
    : root_(std::move(root)), path_(std::move(path)) {
  const auto names = root_.find("architectures");
  if (names != root_.end() && names->is_array() && !names->empty() &&
      (*names)[0].is_string()) {
    architecture_ = (*names)[0].get<std::string>();
  }
  const auto text = root_.find("text_config");
  if (text != root_.end() && text->is_object()) {
    const json inner = *text;
    for (const auto& [key, value] : inner.items()) root_[key] = value;
  }
  json rope = json::object();
  std::string name = "rope_scaling";
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto found = root_.find(key);
    if (found == root_.end() || !found->is_object()) continue;
    rope = *found;
    name = key;
  }
  const auto part_of = [&](const char* kind) {
    const auto part = rope.find(kind);
    return part != rope.end() && part->is_object() ? json(*part) : json();
  };
  const json sliding = part_of("sliding_attention");
  const json full = part_of("full_attention");
  const std::vector<json> parts = {
      full.is_object() ? full : rope,
      sliding.is_object() ? sliding : json::object()};
  for (const json& each : parts) {
    rope_.push_back(CheckpointConfig(each, path_, name + "."));
  }
}

CheckpointConfig::CheckpointConfig(json root, std::string path,
                                   std::string prefix)
    : root_(std::move(root)),
      path_(std::move(path)),
      prefix_(std::move(prefix)) {}

const CheckpointConfig& CheckpointConfig::rope() const {
  read_.insert("rope_scaling");
  read_.insert("rope_parameters");
  return rope_[0];
}

const CheckpointConfig& CheckpointConfig::sliding_rope() const {
  return rope_[1];
}

const json* CheckpointConfig::Find(absl::string_view key) const {
  read_.insert(std::string(key));
  const auto found = root_.find(std::string(key));
  return found == root_.end() || found->is_null() ? nullptr : &*found;
}

absl::Status CheckpointConfig::BadKey(absl::string_view key,
                                      absl::string_view expected) const {
  const auto found = root_.find(std::string(key));
  std::string value = "absent";
  if (found != root_.end()) {
    value = found->dump(-1, ' ', true, json::error_handler_t::replace);
    if (value.size() > 80) value = absl::StrCat(value.substr(0, 80), "...");
  }
  return absl::InvalidArgumentError(absl::StrCat("cannot convert: ", path_,
                                                 ": ", prefix_, key, " is ",
                                                 value, ": want ", expected));
}

absl::StatusOr<std::optional<int64_t>> CheckpointConfig::OptionalInt(
    absl::string_view key) const {
  const json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer() ||
      (value->is_number_unsigned() && value->get<uint64_t>() > INT32_MAX) ||
      value->get<int64_t>() < 0 || value->get<int64_t>() > INT32_MAX) {
    return BadKey(key, "a whole number from 0 on");
  }
  return value->get<int64_t>();
}

absl::StatusOr<int64_t> CheckpointConfig::GetInt(absl::string_view key) const {
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> value, OptionalInt(key));
  if (!value.has_value()) return BadKey(key, "a number");
  return *value;
}

absl::StatusOr<std::optional<double>> CheckpointConfig::OptionalNumber(
    absl::string_view key) const {
  const json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    return BadKey(key, "a number");
  }
  return value->get<double>();
}

absl::StatusOr<std::optional<bool>> CheckpointConfig::OptionalBool(
    absl::string_view key) const {
  const json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) return BadKey(key, "true or false");
  return value->get<bool>();
}

absl::StatusOr<std::optional<std::string>> CheckpointConfig::OptionalString(
    absl::string_view key) const {
  const json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return BadKey(key, "a text");
  return value->get<std::string>();
}

absl::StatusOr<std::optional<std::vector<double>>>
CheckpointConfig::OptionalNumbers(absl::string_view key) const {
  const json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<double> numbers;
  bool good = value->is_array();
  for (size_t i = 0; good && i < value->size(); ++i) {
    good = (*value)[i].is_number() && std::isfinite((*value)[i].get<double>());
    if (good) numbers.push_back((*value)[i].get<double>());
  }
  if (!good) return BadKey(key, "a list of numbers");
  return numbers;
}

absl::StatusOr<std::optional<std::vector<std::string>>>
CheckpointConfig::OptionalStrings(absl::string_view key) const {
  const json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  bool good = value->is_array();
  for (size_t i = 0; good && i < value->size(); ++i) {
    good = (*value)[i].is_string();
    if (good) texts.push_back((*value)[i].get<std::string>());
  }
  if (!good) return BadKey(key, "a list of texts");
  return texts;
}

absl::Status CheckpointConfig::Expect(absl::string_view key,
                                      const std::vector<json>& values) const {
  const json* value = Find(key);
  if (value == nullptr ||
      std::find(values.begin(), values.end(), *value) != values.end()) {
    return absl::OkStatus();
  }
  std::vector<std::string> known;
  for (const json& each : values) known.push_back(each.dump());
  return BadKey(key, absl::StrCat(absl::StrJoin(known, " or "),
                                  ": others are not supported"));
}

absl::Status CheckpointConfig::CheckAllRead(
    std::vector<std::string>* warnings) const {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto found = root_.find(key);
    if (found != root_.end() && !found->is_null() && !found->is_object()) {
      return BadKey(key, "an object, or null");
    }
  }
  std::vector<std::string> unknown;
  for (const auto& [key, value] : root_.items()) {
    if (value.is_null() || read_.count(key) > 0 ||
        std::find(std::begin(kChangesNothing), std::end(kChangesNothing),
                  key) != std::end(kChangesNothing)) {
      continue;
    }
    bool changes = false;
    for (const ChangesResult& row : kChangesResult) {
      if (row.key != LastPart(key)) continue;
      changes = true;
      const json neutral = json::parse(row.neutral);
      if (std::find(neutral.begin(), neutral.end(), value) == neutral.end()) {
        return BadKey(key,
                      "it absent: it changes results, and nothing is known of "
                      "it for this kind of model");
      }
    }
    if (!changes) unknown.push_back(prefix_ + key);
  }
  if (!unknown.empty()) {
    constexpr size_t kMostNamed = 8;
    const size_t more = unknown.size() - std::min(unknown.size(), kMostNamed);
    unknown.resize(unknown.size() - more);
    warnings->push_back(absl::StrCat(
        path_, ": nothing is known of ",
        absl::StrJoin(unknown, ", ",
                      [](std::string* out, const std::string& key) {
                        absl::StrAppend(out, QuoteForMessage(key));
                      }),
        more > 0 ? absl::StrCat(" and ", more, " more") : "",
        ": if they change results, the converted model is another"));
  }
  for (const CheckpointConfig& part : rope_) {
    WEFT_RETURN_IF_ERROR(part.CheckAllRead(warnings));
  }
  return absl::OkStatus();
}

}  // namespace weft
