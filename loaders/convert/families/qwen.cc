// Qwen 1.5, 2, 2.5 and 3, without and with experts: loaders/architectures/
// qwen2.cc, qwen2moe.cc, qwen3.cc and qwen3moe.cc.
#include <optional>

#include "base/status.h"
#include "loaders/convert/families.h"

namespace weft {
namespace {

absl::Status Finish(Conversion& c) {
  // Set, but not used unless the flag says so.
  WEFT_RETURN_IF_ERROR(c.config.Expect("use_sliding_window", {false}));
  c.config.Find("sliding_window");
  WEFT_RETURN_IF_ERROR(CheckWindows(c, 1));
  return SetRope(c);
}

// Every block has experts: their number is the model's, not a block's.
absl::Status FinishMixture(Conversion& c) {
  WEFT_RETURN_IF_ERROR(c.config.Expect("decoder_sparse_step", {1}));
  WEFT_RETURN_IF_ERROR(
      c.config.Expect("mlp_only_layers", {nlohmann::json::array()}));
  return Finish(c);
}

std::vector<KeyRule> MixtureKeys() {
  return Joined(
      DecoderKeys(),
      {{"num_experts", "expert_count", KeyRule::Kind::kUint, std::nullopt,
        /*required=*/true},
       {"num_experts_per_tok", "expert_used_count", KeyRule::Kind::kUint,
        std::nullopt, /*required=*/true},
       {"moe_intermediate_size", "expert_feed_forward_length"},
       {"norm_topk_prob", "expert_weights_norm", KeyRule::Kind::kBool}});
}

// One matrix for each expert, or all in one, gate above up.
std::vector<TensorRule> MixtureTensors() {
  return Joined(
      DecoderTensors(),
      {{"model.layers.{b}.mlp.gate.weight", "blk.{b}.ffn_gate_inp.weight"},
       {"model.layers.{b}.mlp.experts.{e}.gate_proj.weight",
        "blk.{b}.ffn_gate_exps.weight"},
       {"model.layers.{b}.mlp.experts.{e}.up_proj.weight",
        "blk.{b}.ffn_up_exps.weight"},
       {"model.layers.{b}.mlp.experts.{e}.down_proj.weight",
        "blk.{b}.ffn_down_exps.weight"},
       {"model.layers.{b}.mlp.experts.gate_up_proj",
        "blk.{b}.ffn_gate_exps.weight", Rows::kFirstHalf},
       {"model.layers.{b}.mlp.experts.gate_up_proj",
        "blk.{b}.ffn_up_exps.weight", Rows::kSecondHalf},
       {"model.layers.{b}.mlp.experts.down_proj",
        "blk.{b}.ffn_down_exps.weight"}});
}

std::vector<TensorRule> HeadNorms() {
  return {{"model.layers.{b}.self_attn.q_norm.weight",
           "blk.{b}.attn_q_norm.weight"},
          {"model.layers.{b}.self_attn.k_norm.weight",
           "blk.{b}.attn_k_norm.weight"}};
}

}  // namespace

Family Qwen2Family() {
  Family family;
  family.names = {"Qwen2ForCausalLM", "Qwen2Model"};
  family.architecture = "qwen2";
  family.keys = DecoderKeys();
  family.tensors = DecoderTensors();
  family.finish = Finish;
  return family;
}

Family Qwen2MoeFamily() {
  Family family;
  family.names = {"Qwen2MoeForCausalLM"};
  family.architecture = "qwen2moe";
  family.keys = Joined(MixtureKeys(), {{"shared_expert_intermediate_size",
                                        "expert_shared_feed_forward_length"}});
  family.tensors = Joined(
      MixtureTensors(), {{"model.layers.{b}.mlp.shared_expert_gate.weight",
                          "blk.{b}.ffn_gate_inp_shexp.weight"},
                         {"model.layers.{b}.mlp.shared_expert.gate_proj.weight",
                          "blk.{b}.ffn_gate_shexp.weight"},
                         {"model.layers.{b}.mlp.shared_expert.up_proj.weight",
                          "blk.{b}.ffn_up_shexp.weight"},
                         {"model.layers.{b}.mlp.shared_expert.down_proj.weight",
                          "blk.{b}.ffn_down_shexp.weight"}});
  family.finish = FinishMixture;
  return family;
}

Family Qwen3Family() {
  Family family;
  family.names = {"Qwen3ForCausalLM", "Qwen3Model"};
  family.architecture = "qwen3";
  family.keys = DecoderKeys();
  family.tensors = Joined(DecoderTensors(), HeadNorms());
  family.finish = Finish;
  return family;
}

Family Qwen3MoeFamily() {
  Family family;
  family.names = {"Qwen3MoeForCausalLM"};
  family.architecture = "qwen3moe";
  family.keys = MixtureKeys();
  family.tensors = Joined(MixtureTensors(), HeadNorms());
  family.finish = FinishMixture;
  return family;
}

}  // namespace weft
