// Gemma 1 to 3: loaders/architectures/gemma.cc, gemma2.cc and gemma3.cc.
//
// Published norms lack the 1 that is added to their weights; files have it. The
// output is always the embedding. Of Gemma 3 folders with a part that sees
// pictures, the language model alone is taken.
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "loaders/convert/families.h"

namespace weft {
namespace {

TensorRule Norm(absl::string_view from, absl::string_view to) {
  return {from, to, Rows::kAll, Numbers::kPlusOne};
}

std::vector<TensorRule> Tensors(std::vector<TensorRule> norms) {
  norms.push_back(Norm("model.layers.{b}.input_layernorm.weight",
                       "blk.{b}.attn_norm.weight"));
  norms.push_back(Norm("model.norm.weight", "output_norm.weight"));
  norms.push_back({"lm_head.weight", ""});
  return Joined(DecoderTensorsWithoutNorms(), norms);
}

std::vector<TensorRule> FourNorms() {
  return {Norm("model.layers.{b}.post_attention_layernorm.weight",
               "blk.{b}.post_attention_norm.weight"),
          Norm("model.layers.{b}.pre_feedforward_layernorm.weight",
               "blk.{b}.ffn_norm.weight"),
          Norm("model.layers.{b}.post_feedforward_layernorm.weight",
               "blk.{b}.post_ffw_norm.weight")};
}

// Readers know two scales of scores: the largest model's, which they know by
// its blocks, is the embedding's share of a head, all others' the head's
// length.
absl::Status CheckScoreScale(const Conversion& c, int64_t largest) {
  const int64_t scale =
      c.blocks == largest ? c.embedding / c.heads : c.head_length;
  return c.config.Expect("query_pre_attn_scalar", {scale});
}

absl::Status SetWindow(Conversion& c, std::optional<int64_t> otherwise) {
  constexpr char kWindow[] = "sliding_window";
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> window,
                        c.config.OptionalInt(kWindow));
  const int64_t length = window.value_or(otherwise.value_or(0));
  if (length < 1) return c.config.BadKey(kWindow, "a number of tokens");
  c.writer.SetUint32(c.Key("attention.sliding_window"),
                     static_cast<uint32_t>(length));
  return absl::OkStatus();
}

absl::Status FinishGemma(Conversion& c) { return SetRope(c); }

absl::Status FinishGemma2(Conversion& c) {
  WEFT_RETURN_IF_ERROR(CheckScoreScale(c, 46));
  WEFT_RETURN_IF_ERROR(SetWindow(c, 4096));
  WEFT_RETURN_IF_ERROR(CheckWindows(c, 2));
  return SetRope(c);
}

absl::Status FinishGemma3(Conversion& c) {
  WEFT_RETURN_IF_ERROR(CheckScoreScale(c, 62));
  WEFT_RETURN_IF_ERROR(c.config.Expect("sliding_window_pattern", {6}));
  WEFT_RETURN_IF_ERROR(c.config.Expect("attn_logit_softcapping", {0}));
  WEFT_RETURN_IF_ERROR(SetWindow(c, 4096));
  WEFT_RETURN_IF_ERROR(CheckWindows(c, 6));
  WEFT_ASSIGN_OR_RETURN(const std::optional<double> inner,
                        c.config.sliding_rope().OptionalNumber("rope_theta"));
  WEFT_ASSIGN_OR_RETURN(const std::optional<double> outer,
                        c.config.OptionalNumber("rope_local_base_freq"));
  c.writer.SetFloat32(
      c.Key("rope.freq_base_swa"),
      static_cast<float>(inner.value_or(outer.value_or(10000.0))));
  // What transformers takes; SetRope has the last word.
  c.writer.SetFloat32(c.Key("rope.freq_base"), 1e6f);
  return SetRope(c);
}

std::vector<KeyRule> Keys() {
  return Joined(DecoderKeys(),
                {{"rms_norm_eps", "attention.layer_norm_rms_epsilon",
                  KeyRule::Kind::kFloat, 1e-6}});
}

}  // namespace

Family GemmaFamily() {
  Family family;
  family.names = {"GemmaForCausalLM"};
  family.architecture = "gemma";
  // The first folders say "gelu" and mean what all later ones say.
  family.activations = {"gelu_pytorch_tanh", "gelu"};
  family.dimensions.usual_head_length = 256;
  family.keys = Keys();
  family.tensors =
      Tensors({Norm("model.layers.{b}.post_attention_layernorm.weight",
                    "blk.{b}.ffn_norm.weight")});
  family.finish = FinishGemma;
  return family;
}

Family Gemma2Family() {
  Family family;
  family.names = {"Gemma2ForCausalLM"};
  family.architecture = "gemma2";
  family.activations = {"gelu_pytorch_tanh"};
  family.dimensions.usual_head_length = 256;
  family.keys =
      Joined(Keys(), {{"attn_logit_softcapping", "attn_logit_softcapping",
                       KeyRule::Kind::kFloat, 50.0},
                      {"final_logit_softcapping", "final_logit_softcapping",
                       KeyRule::Kind::kFloat, 30.0}});
  family.tensors = Tensors(FourNorms());
  family.finish = FinishGemma2;
  return family;
}

Family Gemma3Family() {
  Family family;
  family.names = {"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"};
  family.dimensions.usual_heads = 8;
  family.dimensions.usual_heads_kv = 4;
  family.architecture = "gemma3";
  family.activations = {"gelu_pytorch_tanh"};
  family.dimensions.usual_head_length = 256;
  family.keys =
      Joined(Keys(), {{"max_position_embeddings", "context_length",
                       KeyRule::Kind::kUint, 131072},
                      {"final_logit_softcapping", "final_logit_softcapping",
                       KeyRule::Kind::kFloat}});
  family.tensors = Joined(Tensors(FourNorms()),
                          {Norm("model.layers.{b}.self_attn.q_norm.weight",
                                "blk.{b}.attn_q_norm.weight"),
                           Norm("model.layers.{b}.self_attn.k_norm.weight",
                                "blk.{b}.attn_k_norm.weight")});
  family.finish = FinishGemma3;
  return family;
}

}  // namespace weft
