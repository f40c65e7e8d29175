// gpt-oss: loaders/architectures/gpt_oss.cc.
//
// Experts are published as blocks of MXFP4, gate and up taking turns row by
// row, and stay MXFP4; or as plain matrices the other way round.
#include "base/status.h"
#include "loaders/convert/families.h"

namespace weft {
namespace {

using Kind = KeyRule::Kind;

absl::Status Finish(Conversion& c) {
  WEFT_RETURN_IF_ERROR(CheckWindows(c, 2));
  // What readers know, whatever files say.
  WEFT_RETURN_IF_ERROR(c.config.Expect("swiglu_limit", {7.0}));
  WEFT_ASSIGN_OR_RETURN(const int64_t width,
                        c.config.GetInt("intermediate_size"));
  c.writer.SetUint32(c.Key("expert_feed_forward_length"),
                     static_cast<uint32_t>(width));
  c.config.Find("experts_per_token");
  c.config.Find("initial_context_length");
  RopeRules rules;
  // llama.cpp rounds the ends of the ramp, and files are made for it.
  rules.ignores_truncate = true;
  return SetRope(c, rules);
}

TensorRule Packed(absl::string_view from, absl::string_view to, Rows rows,
                  TensorRule::Packed packed) {
  TensorRule rule = {from, to, rows};
  rule.packed = packed;
  return rule;
}

TensorRule Transposed(absl::string_view from, absl::string_view to, Rows rows) {
  TensorRule rule = {from, to, rows};
  rule.transposed = true;
  return rule;
}

}  // namespace

Family GptOssFamily() {
  Family family;
  family.names = {"GptOssForCausalLM"};
  family.architecture = "gpt-oss";
  family.pretokenizer = "gpt-4o";
  family.keys = Joined(
      DecoderKeys(),
      {{"num_local_experts", "expert_count", Kind::kUint, std::nullopt,
        /*required=*/true},
       {"num_experts_per_tok", "expert_used_count", Kind::kUint, std::nullopt,
        /*required=*/true},
       {"sliding_window", "attention.sliding_window", Kind::kUint, 128}});
  constexpr auto kBlocks = TensorRule::Packed::kBlocks;
  constexpr auto kScales = TensorRule::Packed::kScales;
#define WEFT_EXPERTS "model.layers.{b}.mlp.experts."
  family.tensors = Joined(
      DecoderTensors(),
      {{"model.layers.{b}.post_attention_layernorm.weight",
        "blk.{b}.post_attention_norm.weight"},
       {"model.layers.{b}.self_attn.sinks", "blk.{b}.attn_sinks.weight"},
       {"model.layers.{b}.mlp.router.weight", "blk.{b}.ffn_gate_inp.weight"},
       {"model.layers.{b}.mlp.router.bias", "blk.{b}.ffn_gate_inp.bias"},
       {WEFT_EXPERTS "gate_up_proj_bias", "blk.{b}.ffn_gate_exps.bias",
        Rows::kEven},
       {WEFT_EXPERTS "gate_up_proj_bias", "blk.{b}.ffn_up_exps.bias",
        Rows::kOdd},
       {WEFT_EXPERTS "down_proj_bias", "blk.{b}.ffn_down_exps.bias"},
       Packed(WEFT_EXPERTS "gate_up_proj_blocks",
              "blk.{b}.ffn_gate_exps.weight", Rows::kEven, kBlocks),
       Packed(WEFT_EXPERTS "gate_up_proj_scales",
              "blk.{b}.ffn_gate_exps.weight", Rows::kEven, kScales),
       Packed(WEFT_EXPERTS "gate_up_proj_blocks", "blk.{b}.ffn_up_exps.weight",
              Rows::kOdd, kBlocks),
       Packed(WEFT_EXPERTS "gate_up_proj_scales", "blk.{b}.ffn_up_exps.weight",
              Rows::kOdd, kScales),
       Packed(WEFT_EXPERTS "down_proj_blocks", "blk.{b}.ffn_down_exps.weight",
              Rows::kAll, kBlocks),
       Packed(WEFT_EXPERTS "down_proj_scales", "blk.{b}.ffn_down_exps.weight",
              Rows::kAll, kScales),
       Transposed(WEFT_EXPERTS "gate_up_proj", "blk.{b}.ffn_gate_exps.weight",
                  Rows::kEven),
       Transposed(WEFT_EXPERTS "gate_up_proj", "blk.{b}.ffn_up_exps.weight",
                  Rows::kOdd),
       Transposed(WEFT_EXPERTS "down_proj", "blk.{b}.ffn_down_exps.weight",
                  Rows::kAll)});
#undef WEFT_EXPERTS
  family.finish = Finish;
  return family;
}

}  // namespace weft
