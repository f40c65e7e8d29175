#include "loaders/convert/family.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "loaders/convert/families.h"

namespace weft {

namespace {

// Made once: a family is a handful of small tables.
const std::vector<Family>& Families() {
  static const auto* const kFamilies = new std::vector<Family>{
#define WEFT_FAMILY(NAME) NAME(),
#include "loaders/convert/family_list.h"
#undef WEFT_FAMILY
  };
  return *kFamilies;
}

}  // namespace

const Family* FindFamily(absl::string_view name) {
  for (const Family& family : Families()) {
    if (std::find(family.names.begin(), family.names.end(), name) !=
        family.names.end()) {
      return &family;
    }
  }
  return nullptr;
}

std::vector<std::string> FamilyNames() {
  std::vector<std::string> names;
  for (const Family& family : Families()) {
    for (absl::string_view name : family.names) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Conversion::Key(absl::string_view name) const {
  return absl::StrCat(architecture, ".", name);
}

void Conversion::AddVector(std::string name, std::vector<float> values) {
  vectors.push_back({std::move(name), std::move(values)});
}

std::vector<KeyRule> DecoderKeys() {
  using Kind = KeyRule::Kind;
  return {
      {"max_position_embeddings", "context_length", Kind::kUint, std::nullopt,
       /*required=*/true},
      {"intermediate_size", "feed_forward_length"},
      {"rms_norm_eps", "attention.layer_norm_rms_epsilon", Kind::kFloat},
  };
}

std::vector<TensorRule> DecoderTensorsWithoutNorms() {
  return {
      {"model.embed_tokens.weight", "token_embd.weight"},
      {"model.layers.{b}.self_attn.q_proj.weight", "blk.{b}.attn_q.weight"},
      {"model.layers.{b}.self_attn.q_proj.bias", "blk.{b}.attn_q.bias"},
      {"model.layers.{b}.self_attn.k_proj.weight", "blk.{b}.attn_k.weight"},
      {"model.layers.{b}.self_attn.k_proj.bias", "blk.{b}.attn_k.bias"},
      {"model.layers.{b}.self_attn.v_proj.weight", "blk.{b}.attn_v.weight"},
      {"model.layers.{b}.self_attn.v_proj.bias", "blk.{b}.attn_v.bias"},
      {"model.layers.{b}.self_attn.o_proj.weight",
       "blk.{b}.attn_output.weight"},
      {"model.layers.{b}.self_attn.o_proj.bias", "blk.{b}.attn_output.bias"},
      {"model.layers.{b}.mlp.gate_proj.weight", "blk.{b}.ffn_gate.weight"},
      {"model.layers.{b}.mlp.gate_proj.bias", "blk.{b}.ffn_gate.bias"},
      {"model.layers.{b}.mlp.up_proj.weight", "blk.{b}.ffn_up.weight"},
      {"model.layers.{b}.mlp.up_proj.bias", "blk.{b}.ffn_up.bias"},
      {"model.layers.{b}.mlp.down_proj.weight", "blk.{b}.ffn_down.weight"},
      {"model.layers.{b}.mlp.down_proj.bias", "blk.{b}.ffn_down.bias"},
      {"model.norm.weight", "output_norm.weight"},
      {"lm_head.weight", "output.weight"},
      // Frequencies that follow from config.json.
      {"model.layers.{b}.self_attn.rotary_emb.inv_freq", ""},
      {"model.rotary_emb.inv_freq", ""},
  };
}

std::vector<TensorRule> DecoderTensors() {
  return Joined(
      DecoderTensorsWithoutNorms(),
      {{"model.layers.{b}.input_layernorm.weight", "blk.{b}.attn_norm.weight"},
       {"model.layers.{b}.post_attention_layernorm.weight",
        "blk.{b}.ffn_norm.weight"}});
}

std::vector<KeyRule> Joined(std::vector<KeyRule> a, std::vector<KeyRule> b) {
  for (KeyRule& rule : b) {
    a.erase(std::remove_if(
                a.begin(), a.end(),
                [&](const KeyRule& each) { return each.gguf == rule.gguf; }),
            a.end());
  }
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<TensorRule> Joined(std::vector<TensorRule> a,
                               std::vector<TensorRule> b) {
  for (const TensorRule& rule : b) {
    a.erase(std::remove_if(
                a.begin(), a.end(),
                [&](const TensorRule& each) { return each.from == rule.from; }),
            a.end());
  }
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

absl::Status CheckWindows(const Conversion& conversion, int64_t period,
                          bool first_sees_all) {
  constexpr char kTypes[] = "layer_types";
  WEFT_ASSIGN_OR_RETURN(const auto types,
                        conversion.config.OptionalStrings(kTypes));
  if (!types.has_value()) return absl::OkStatus();
  bool good = static_cast<int64_t>(types->size()) == conversion.blocks;
  for (size_t i = 0; good && i < types->size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) % period;
    const bool sees_all = at == (first_sees_all ? 0 : period - 1);
    good = (*types)[i] == (sees_all ? "full_attention" : "sliding_attention");
  }
  if (good) return absl::OkStatus();
  return conversion.config.BadKey(
      kTypes, period == 1
                  ? std::string("\"full_attention\" for each block")
                  : absl::StrCat("one for each block, and of every ", period,
                                 " the ", first_sees_all ? "first" : "last",
                                 " \"full_attention\", all others "
                                 "\"sliding_attention\""));
}

}  // namespace weft
