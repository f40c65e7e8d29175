// Phi-3, Phi-3.5, Phi-4 and Phi-4-mini: loaders/architectures/phi3.cc. Its
// matrices are published joined, as files have them.
#include <optional>

#include "base/status.h"
#include "loaders/convert/families.h"

namespace weft {
namespace {

absl::Status Finish(Conversion& c) {
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> window,
                        c.config.OptionalInt("sliding_window"));
  // 0 tells models without one from those of spring 2024, whose files say
  // nothing.
  c.writer.SetUint32(c.Key("attention.sliding_window"),
                     static_cast<uint32_t>(window.value_or(0)));
  WEFT_ASSIGN_OR_RETURN(
      const std::optional<int64_t> original,
      c.config.OptionalInt("original_max_position_embeddings"));
  if (original.has_value()) {
    c.writer.SetUint32(c.Key("rope.scaling.original_context_length"),
                       static_cast<uint32_t>(*original));
  }
  RopeRules rules;
  rules.writes_dimensions = true;
  rules.longrope = true;
  return SetRope(c, rules);
}

}  // namespace

Family Phi3Family() {
  Family family;
  family.names = {"Phi3ForCausalLM"};
  family.architecture = "phi3";
  family.keys = DecoderKeys();
  family.tensors = Joined(
      DecoderTensors(),
      {{"model.layers.{b}.self_attn.qkv_proj.weight",
        "blk.{b}.attn_qkv.weight"},
       {"model.layers.{b}.mlp.gate_up_proj.weight", "blk.{b}.ffn_up.weight"}});
  family.finish = Finish;
  return family;
}

}  // namespace weft
