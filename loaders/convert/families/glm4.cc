// GLM-4-0414: loaders/architectures/glm4.cc. Pairs that turn together are
// neighbours in what is published, too.
#include "base/status.h"
#include "loaders/convert/families.h"

namespace weft {
namespace {

absl::Status Finish(Conversion& c) {
  WEFT_RETURN_IF_ERROR(CheckWindows(c, 1));
  RopeRules rules;
  rules.partial = 0.5;
  rules.writes_dimensions = true;
  return SetRope(c, rules);
}

}  // namespace

Family Glm4Family() {
  Family family;
  family.names = {"Glm4ForCausalLM"};
  family.architecture = "glm4";
  family.pretokenizer = "glm4";
  family.keys = DecoderKeys();
  family.tensors = Joined(
      DecoderTensors(),
      {{"model.layers.{b}.mlp.gate_up_proj.weight", "blk.{b}.ffn_up.weight"},
       {"model.layers.{b}.post_self_attn_layernorm.weight",
        "blk.{b}.post_attention_norm.weight"},
       {"model.layers.{b}.post_mlp_layernorm.weight",
        "blk.{b}.post_ffw_norm.weight"}});
  family.finish = Finish;
  return family;
}

}  // namespace weft
