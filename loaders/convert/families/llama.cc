// LLaMA 1 to 3, Mistral, SmolLM and TinyLlama, and with experts Mixtral:
// loaders/architectures/llama.cc.
#include <optional>

#include "base/status.h"
#include "loaders/convert/families.h"

namespace weft {
namespace {

// llama.cpp takes no notice of the window of early Mistrals; with it in the
// file, weft keeps contexts as short.
absl::Status Finish(Conversion& c) {
  WEFT_ASSIGN_OR_RETURN(const std::optional<int64_t> window,
                        c.config.OptionalInt("sliding_window"));
  if (window.value_or(0) > 0) {
    c.writer.SetUint32(c.Key("attention.sliding_window"),
                       static_cast<uint32_t>(*window));
  }
  WEFT_RETURN_IF_ERROR(CheckWindows(c, 1));
  RopeRules rules;
  rules.writes_dimensions = true;
  return SetRope(c, rules);
}

}  // namespace

Family LlamaFamily() {
  Family family;
  family.names = {"LlamaForCausalLM", "LLaMAForCausalLM", "MistralForCausalLM",
                  "MixtralForCausalLM", "LlamaModel"};
  family.architecture = "llama";
  family.pretokenizer = "llama-bpe";
  family.keys =
      Joined(DecoderKeys(), {{"vocab_size", "vocab_size"},
                             {"num_local_experts", "expert_count"},
                             {"num_experts_per_tok", "expert_used_count"}});
  family.tensors =
      Joined(DecoderTensors(),
             {{"model.layers.{b}.self_attn.q_proj.weight",
               "blk.{b}.attn_q.weight", Rows::kPairsOfQueries},
              {"model.layers.{b}.self_attn.q_proj.bias", "blk.{b}.attn_q.bias",
               Rows::kPairsOfQueries},
              {"model.layers.{b}.self_attn.k_proj.weight",
               "blk.{b}.attn_k.weight", Rows::kPairsOfKeys},
              {"model.layers.{b}.self_attn.k_proj.bias", "blk.{b}.attn_k.bias",
               Rows::kPairsOfKeys},
              {"model.layers.{b}.block_sparse_moe.gate.weight",
               "blk.{b}.ffn_gate_inp.weight"},
              {"model.layers.{b}.block_sparse_moe.experts.{e}.w1.weight",
               "blk.{b}.ffn_gate_exps.weight"},
              {"model.layers.{b}.block_sparse_moe.experts.{e}.w2.weight",
               "blk.{b}.ffn_down_exps.weight"},
              {"model.layers.{b}.block_sparse_moe.experts.{e}.w3.weight",
               "blk.{b}.ffn_up_exps.weight"}});
  family.finish = Finish;
  return family;
}

}  // namespace weft
