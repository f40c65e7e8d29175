// OLMo 2 and 3: loaders/architectures/olmo2.cc.
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "loaders/convert/families.h"

namespace weft {
namespace {

absl::Status Finish(Conversion& c) {
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> window,
                        c.config.OptionalInt("sliding_window"));
  if (window.value_or(0) > 0) {
    // OLMo 3: every fourth block sees everything.
    WEFT_RETURN_IF_ERROR(CheckWindows(c, 4));
    c.writer.SetUint32(c.Key("attention.sliding_window"),
                       static_cast<uint32_t>(*window));
    const size_t blocks = static_cast<size_t>(c.blocks);
    const std::unique_ptr<bool[]> slides(new bool[blocks]);
    for (size_t i = 0; i < blocks; ++i) slides[i] = (i + 1) % 4 != 0;
    c.writer.SetBools(c.Key("attention.sliding_window_pattern"),
                      absl::MakeConstSpan(slides.get(), blocks));
  } else {
    WEFT_RETURN_IF_ERROR(CheckWindows(c, 1));
  }
  return SetRope(c);
}

}  // namespace

Family Olmo2Family() {
  Family family;
  family.names = {"Olmo2ForCausalLM", "Olmo3ForCausalLM"};
  family.architecture = "olmo2";
  family.keys = DecoderKeys();
  family.tensors =
      Joined(DecoderTensorsWithoutNorms(),
             {{"model.layers.{b}.self_attn.q_norm.weight",
               "blk.{b}.attn_q_norm.weight"},
              {"model.layers.{b}.self_attn.k_norm.weight",
               "blk.{b}.attn_k_norm.weight"},
              {"model.layers.{b}.post_attention_layernorm.weight",
               "blk.{b}.post_attention_norm.weight"},
              {"model.layers.{b}.post_feedforward_layernorm.weight",
               "blk.{b}.post_ffw_norm.weight"}});
  family.finish = Finish;
  return family;
}

}  // namespace weft
