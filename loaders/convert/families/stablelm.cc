// StableLM 2 and StableLM 3B: loaders/architectures/stablelm.cc. Norms of heads
// are published one by one.
#include "base/status.h"
#include "loaders/convert/families.h"

namespace weft {
namespace {

absl::Status Finish(Conversion& c) {
  // Whether there are norms of heads, tensors say.
  c.config.Find("qk_layernorm");
  RopeRules rules;
  rules.partial = 0.25;
  rules.writes_dimensions = true;
  return SetRope(c, rules);
}

}  // namespace

Family StableLmFamily() {
  Family family;
  family.names = {"StableLmForCausalLM", "StableLMEpochForCausalLM"};
  family.architecture = "stablelm";
  family.pretokenizer = "stablelm2";
  family.keys = {{"max_position_embeddings", "context_length",
                  KeyRule::Kind::kUint, std::nullopt, /*required=*/true},
                 {"intermediate_size", "feed_forward_length"},
                 {"layer_norm_eps", "attention.layer_norm_epsilon",
                  KeyRule::Kind::kFloat, 1e-5},
                 {"use_parallel_residual", "use_parallel_residual",
                  KeyRule::Kind::kBool, 0.0}};
  family.tensors = Joined(
      DecoderTensors(),
      {{"model.layers.{b}.input_layernorm.bias", "blk.{b}.attn_norm.bias"},
       {"model.layers.{b}.post_attention_layernorm.bias",
        "blk.{b}.ffn_norm.bias"},
       {"model.layers.{b}.self_attn.q_layernorm.norms.{e}.weight",
        "blk.{b}.attn_q_norm.weight"},
       {"model.layers.{b}.self_attn.k_layernorm.norms.{e}.weight",
        "blk.{b}.attn_k_norm.weight"},
       {"model.norm.bias", "output_norm.bias"}});
  family.finish = Finish;
  return family;
}

}  // namespace weft
