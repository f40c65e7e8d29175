// Qwen1.5-MoE and Qwen2-MoE (Yang et al. 2024, arXiv:2407.10671): Qwen2 whose
// feed-forward network is many small experts and one that all tokens share,
// with a gate of its own.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"

namespace weft {
namespace {

// The network that every token goes through, times a number from 0 to 1.
ValueId SharedExpert(ModelBuilder& m, const std::string& blk, ValueId x) {
  const ModelConfig& c = m.config;
  const int64_t d = c.embedding_length;
  const int64_t f = c.shared_feed_forward_length > 0
                        ? c.shared_feed_forward_length
                        : c.feed_forward_length;
  const ValueId gate = m.Linear(blk + "ffn_gate_shexp", x, f, d);
  const ValueId up = m.Linear(blk + "ffn_up_shexp", x, f, d);
  m.Name(blk + "ffn_act_shexp");
  const ValueId hidden = m.Mul(m.Silu(gate), up);
  const ValueId down = m.Linear(blk + "ffn_down_shexp", hidden, d, f);
  const ValueId share = m.Linear(blk + "ffn_gate_inp_shexp", x, 1, d);
  m.Name(blk + "ffn_shexp");
  return m.WeightedSum(down, m.Sigmoid(share));
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kHalves);

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const Heads heads = SeparateHeads(
        m, block, RmsNorm(m, blk + "attn_norm", x), Bias::kRequired);
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), DefaultAttention(c));
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId normed = RmsNorm(m, blk + "ffn_norm", x);
    const ValueId chosen =
        Experts(m, blk, normed, c.expert_weights_norm.value_or(false));
    const ValueId shared = SharedExpert(m, blk, normed);
    m.Name(blk + "ffn_all_experts");
    const ValueId fed = m.Add(chosen, shared);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.handled_keys = {"expert_count"};
  return traits;
}

}  // namespace

const Architecture kQwen2Moe = {"qwen2moe", Traits(), Build};

}  // namespace weft
