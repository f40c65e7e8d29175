// BERT, RoBERTa and XLM-RoBERTa, and Nomic Embed: loaders/architectures/bert.cc
// and nomic_bert.cc.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "loaders/convert/families.h"

namespace weft {
namespace {

using Kind = KeyRule::Kind;

// Of the two heads of training, and positions that number themselves.
std::vector<TensorRule> Unused() {
  return {{"embeddings.position_ids", ""},
          {"pooler.dense.weight", ""},
          {"pooler.dense.bias", ""},
          {"cls.predictions.bias", ""},
          {"cls.predictions.transform.dense.weight", ""},
          {"cls.predictions.transform.dense.bias", ""},
          {"cls.predictions.transform.LayerNorm.weight", ""},
          {"cls.predictions.transform.LayerNorm.bias", ""},
          {"cls.predictions.decoder.weight", ""},
          {"cls.predictions.decoder.bias", ""},
          {"cls.seq_relationship.weight", ""},
          {"cls.seq_relationship.bias", ""},
          {"lm_head.bias", ""},
          {"lm_head.dense.weight", ""},
          {"lm_head.dense.bias", ""},
          {"lm_head.layer_norm.weight", ""},
          {"lm_head.layer_norm.bias", ""},
          {"lm_head.decoder.weight", ""},
          {"lm_head.decoder.bias", ""}};
}

absl::Status SetTokenTypes(Conversion& c) {
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> types,
                        c.config.OptionalInt("type_vocab_size"));
  c.writer.SetUint32("tokenizer.ggml.token_type_count",
                     static_cast<uint32_t>(types.value_or(1)));
  c.writer.SetBool(c.Key("attention.causal"), false);
  return absl::OkStatus();
}

absl::Status FinishBert(Conversion& c) {
  WEFT_RETURN_IF_ERROR(
      c.config.Expect("position_embedding_type", {"absolute"}));
  WEFT_RETURN_IF_ERROR(c.config.Expect("is_decoder", {false}));
  return SetTokenTypes(c);
}

// Names of what a head tells apart, by number.
absl::StatusOr<std::vector<std::string>> LabelsOf(const Conversion& c) {
  std::vector<std::string> labels;
  constexpr char kKey[] = "id2label";
  const nlohmann::json* const found = c.config.Find(kKey);
  if (found == nullptr) return labels;
  for (size_t i = 0; found->is_object() && i < found->size(); ++i) {
    const auto label = found->find(absl::StrCat(i));
    if (label == found->end() || !label->is_string()) break;
    labels.push_back(label->get<std::string>());
  }
  if (labels.empty() || labels.size() != found->size()) {
    return c.config.BadKey(kKey, "a text for each number from 0 on");
  }
  return labels;
}

// Positions are counted from behind the padding's on, and files have those rows
// alone.
absl::Status FinishRoberta(Conversion& c) {
  WEFT_RETURN_IF_ERROR(FinishBert(c));
  WEFT_RETURN_IF_ERROR(c.config.Expect("pad_token_id", {1}));
  WEFT_ASSIGN_OR_RETURN(const int64_t positions,
                        c.config.GetInt("max_position_embeddings"));
  if (positions <= 2) {
    return c.config.BadKey("max_position_embeddings", "a number above 2");
  }
  c.writer.SetUint32(c.Key("context_length"),
                     static_cast<uint32_t>(positions - 2));
  // Between the two texts of a pair.
  c.writer.SetBool("tokenizer.ggml.add_sep_token", true);
  if (!absl::EndsWith(c.config.architecture(), "ForSequenceClassification")) {
    return absl::OkStatus();
  }
  constexpr uint32_t kRank = 4;  // `pooling_type`
  c.writer.SetUint32(c.Key("pooling_type"), kRank);
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> labels, LabelsOf(c));
  if (!labels.empty()) {
    c.writer.SetStrings(c.Key("classifier.output_labels"), labels);
  }
  return absl::OkStatus();
}

// What nomic's own code knows beyond what readers do.
absl::Status FinishNomic(Conversion& c) {
  const CheckpointConfig& config = c.config;
  for (const char* key :
       {"prenorm", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "causal",
        "use_rms_norm", "rotary_emb_interleaved", "parallel_block",
        "scale_attn_by_inverse_layer_idx", "num_experts",
        "moe_every_n_layers"}) {
    WEFT_RETURN_IF_ERROR(config.Expect(key, {false, 0}));
  }
  WEFT_RETURN_IF_ERROR(config.Expect("activation_function", {"swiglu"}));
  WEFT_RETURN_IF_ERROR(config.Expect("rotary_emb_fraction", {1.0}));
  WEFT_RETURN_IF_ERROR(config.Expect("scale_attn_weights", {true}));
  // Beyond the positions of training another base would be taken, by the length
  // of the text: contexts end there.
  WEFT_ASSIGN_OR_RETURN(const std::optional<double> scaling,
                        config.OptionalNumber("rotary_scaling_factor"));
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> trained,
                        config.OptionalInt("max_trained_positions"));
  WEFT_ASSIGN_OR_RETURN(const int64_t positions, config.GetInt("n_positions"));
  constexpr int64_t kTrained = 2048;  // of the published ones
  if (trained.has_value() || scaling.has_value()) {
    c.writer.SetUint32(
        c.Key("context_length"),
        static_cast<uint32_t>(std::min(positions, trained.value_or(kTrained))));
  }
  constexpr char kBase[] = "rotary_emb_base";
  WEFT_ASSIGN_OR_RETURN(const std::optional<double> base,
                        config.OptionalNumber(kBase));
  if (!(base.value_or(10000.0) > 1)) {
    return config.BadKey(kBase, "a number above 1");
  }
  c.writer.SetFloat32(c.Key("rope.freq_base"),
                      static_cast<float>(base.value_or(10000.0)));
  for (const char* key :
       {"attn_pdrop", "resid_pdrop", "embd_pdrop", "fused_bias_fc",
        "fused_dropout_add_ln", "use_flash_attn", "use_xentropy",
        "pad_vocab_size_multiple", "reorder_and_upcast_attn",
        "rotary_emb_scale_base", "summary_activation", "summary_first_dropout",
        "summary_proj_to_labels", "summary_type", "summary_use_proj",
        "dense_seq_output", "last_layer_subset", "layer_norm_training"}) {
    config.Find(key);
  }
  return SetTokenTypes(c);
}

}  // namespace

Family BertFamily() {
  Family family;
  family.names = {"BertModel", "BertForMaskedLM"};
  family.architecture = "bert";
  family.activations = {"gelu"};
  family.encoder = true;
  family.keys = {
      {"max_position_embeddings", "context_length", Kind::kUint, std::nullopt,
       /*required=*/true},
      {"intermediate_size", "feed_forward_length", Kind::kUint, std::nullopt,
       /*required=*/true},
      {"layer_norm_eps", "attention.layer_norm_epsilon", Kind::kFloat, 1e-12}};
#define WEFT_LAYER "encoder.layer.{b}."
  family.tensors = Joined(
      Unused(),
      {{"embeddings.word_embeddings.weight", "token_embd.weight"},
       {"embeddings.position_embeddings.weight", "position_embd.weight"},
       {"embeddings.token_type_embeddings.weight", "token_types.weight"},
       {"embeddings.LayerNorm.weight", "token_embd_norm.weight"},
       {"embeddings.LayerNorm.bias", "token_embd_norm.bias"},
       {WEFT_LAYER "attention.self.query.weight", "blk.{b}.attn_q.weight"},
       {WEFT_LAYER "attention.self.query.bias", "blk.{b}.attn_q.bias"},
       {WEFT_LAYER "attention.self.key.weight", "blk.{b}.attn_k.weight"},
       {WEFT_LAYER "attention.self.key.bias", "blk.{b}.attn_k.bias"},
       {WEFT_LAYER "attention.self.value.weight", "blk.{b}.attn_v.weight"},
       {WEFT_LAYER "attention.self.value.bias", "blk.{b}.attn_v.bias"},
       {WEFT_LAYER "attention.output.dense.weight",
        "blk.{b}.attn_output.weight"},
       {WEFT_LAYER "attention.output.dense.bias", "blk.{b}.attn_output.bias"},
       {WEFT_LAYER "attention.output.LayerNorm.weight",
        "blk.{b}.attn_output_norm.weight"},
       {WEFT_LAYER "attention.output.LayerNorm.bias",
        "blk.{b}.attn_output_norm.bias"},
       {WEFT_LAYER "intermediate.dense.weight", "blk.{b}.ffn_up.weight"},
       {WEFT_LAYER "intermediate.dense.bias", "blk.{b}.ffn_up.bias"},
       {WEFT_LAYER "output.dense.weight", "blk.{b}.ffn_down.weight"},
       {WEFT_LAYER "output.dense.bias", "blk.{b}.ffn_down.bias"},
       {WEFT_LAYER "output.LayerNorm.weight",
        "blk.{b}.layer_output_norm.weight"},
       {WEFT_LAYER "output.LayerNorm.bias", "blk.{b}.layer_output_norm.bias"}});
#undef WEFT_LAYER
  family.finish = FinishBert;
  return family;
}

Family RobertaFamily() {
  Family family = BertFamily();
  family.names = {"XLMRobertaModel",
                  "XLMRobertaForMaskedLM",
                  "XLMRobertaForSequenceClassification",
                  "RobertaModel",
                  "RobertaForMaskedLM",
                  "RobertaForSequenceClassification"};
  family.keys.erase(std::remove_if(family.keys.begin(), family.keys.end(),
                                   [](const KeyRule& rule) {
                                     return rule.gguf == "context_length";
                                   }),
                    family.keys.end());
  family.tensors = Joined(family.tensors,
                          {{"embeddings.position_embeddings.weight",
                            "position_embd.weight", Rows::kFromThird},
                           {"classifier.dense.weight", "cls.weight"},
                           {"classifier.dense.bias", "cls.bias"},
                           {"classifier.out_proj.weight", "cls.output.weight"},
                           {"classifier.out_proj.bias", "cls.output.bias"}});
  family.finish = FinishRoberta;
  return family;
}

Family NomicBertFamily() {
  Family family;
  family.names = {"NomicBertModel"};
  family.architecture = "nomic-bert";
  family.encoder = true;
  family.dimensions.blocks = "n_layer";
  family.dimensions.embedding = "n_embd";
  family.dimensions.heads = "n_head";
  family.keys = {{"n_positions", "context_length", Kind::kUint, std::nullopt,
                  /*required=*/true},
                 {"n_inner", "feed_forward_length", Kind::kUint, std::nullopt,
                  /*required=*/true},
                 {"layer_norm_epsilon", "attention.layer_norm_epsilon",
                  Kind::kFloat, 1e-12}};
#define WEFT_LAYER "encoder.layers.{b}."
  family.tensors =
      Joined(Unused(),
             {{"embeddings.word_embeddings.weight", "token_embd.weight"},
              {"embeddings.token_type_embeddings.weight", "token_types.weight"},
              {"emb_ln.weight", "token_embd_norm.weight"},
              {"emb_ln.bias", "token_embd_norm.bias"},
              {WEFT_LAYER "attn.Wqkv.weight", "blk.{b}.attn_qkv.weight"},
              {WEFT_LAYER "attn.out_proj.weight", "blk.{b}.attn_output.weight"},
              {WEFT_LAYER "norm1.weight", "blk.{b}.attn_output_norm.weight"},
              {WEFT_LAYER "norm1.bias", "blk.{b}.attn_output_norm.bias"},
              {WEFT_LAYER "mlp.fc11.weight", "blk.{b}.ffn_up.weight"},
              {WEFT_LAYER "mlp.fc12.weight", "blk.{b}.ffn_gate.weight"},
              {WEFT_LAYER "mlp.fc2.weight", "blk.{b}.ffn_down.weight"},
              {WEFT_LAYER "norm2.weight", "blk.{b}.layer_output_norm.weight"},
              {WEFT_LAYER "norm2.bias", "blk.{b}.layer_output_norm.bias"}});
#undef WEFT_LAYER
  family.finish = FinishNomic;
  return family;
}

}  // namespace weft
