// Granite 3, dense and with experts: loaders/architectures/granite.cc.
#include <optional>

#include "base/status.h"
#include "loaders/convert/families.h"

namespace weft {
namespace {

using Kind = KeyRule::Kind;

absl::Status Finish(Conversion& c) {
  WEFT_RETURN_IF_ERROR(CheckWindows(c, 1));
  WEFT_RETURN_IF_ERROR(c.config.Expect("position_embedding_type", {"rope"}));
  RopeRules rules;
  rules.writes_dimensions = true;
  return SetRope(c, rules);
}

std::vector<KeyRule> Scales() {
  return {{"vocab_size", "vocab_size"},
          {"attention_multiplier", "attention.scale", Kind::kFloat},
          {"embedding_multiplier", "embedding_scale", Kind::kFloat},
          {"residual_multiplier", "residual_scale", Kind::kFloat},
          {"logits_scaling", "logit_scale", Kind::kFloat, 1.0}};
}

}  // namespace

Family GraniteFamily() {
  Family family = LlamaFamily();
  family.names = {"GraniteForCausalLM"};
  family.architecture = "granite";
  family.pretokenizer = "refact";
  family.keys = Joined(DecoderKeys(), Scales());
  family.finish = Finish;
  return family;
}

Family GraniteMoeFamily() {
  Family family = GraniteFamily();
  family.names = {"GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"};
  family.architecture = "granitemoe";
  family.keys = Joined(
      family.keys,
      {{"num_local_experts", "expert_count", Kind::kUint, std::nullopt,
        /*required=*/true},
       {"num_experts_per_tok", "expert_used_count", Kind::kUint, std::nullopt,
        /*required=*/true},
       {"shared_intermediate_size", "expert_shared_feed_forward_length"}});
  // Gate above up.
  family.tensors =
      Joined(family.tensors,
             {{"model.layers.{b}.block_sparse_moe.router.layer.weight",
               "blk.{b}.ffn_gate_inp.weight"},
              {"model.layers.{b}.block_sparse_moe.input_linear.weight",
               "blk.{b}.ffn_gate_exps.weight", Rows::kFirstHalf},
              {"model.layers.{b}.block_sparse_moe.input_linear.weight",
               "blk.{b}.ffn_up_exps.weight", Rows::kSecondHalf},
              {"model.layers.{b}.block_sparse_moe.output_linear.weight",
               "blk.{b}.ffn_down_exps.weight"},
              {"model.layers.{b}.shared_mlp.input_linear.weight",
               "blk.{b}.ffn_gate_shexp.weight", Rows::kFirstHalf},
              {"model.layers.{b}.shared_mlp.input_linear.weight",
               "blk.{b}.ffn_up_shexp.weight", Rows::kSecondHalf},
              {"model.layers.{b}.shared_mlp.output_linear.weight",
               "blk.{b}.ffn_down_shexp.weight"}});
  return family;
}

}  // namespace weft
