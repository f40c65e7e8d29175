// Qwen1.5-MoE and Qwen2-MoE (Yang et al. 2024, arXiv:2407.10671): Qwen2 whose
// feed-forward network is many small experts and one that all tokens share,
// with a gate of its own.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kHalves);
  const ExpertOptions experts = ExpertsOf(c);

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const Heads heads = SeparateHeads(
        m, block, RmsNorm(m, blk + "attn_norm", x), Bias::kRequired);
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), DefaultAttention(c));
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId normed = RmsNorm(m, blk + "ffn_norm", x);
    const ValueId chosen = Experts(m, blk, normed, experts);
    const ValueId shared = SharedExperts(
        m, blk, normed,
        experts.shared_width > 0 ? experts.shared_width : c.feed_forward_length,
        Activation::kSilu, /*gated=*/true);
    m.Name(blk + "ffn_all_experts");
    const ValueId fed = m.Add(chosen, shared);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x, Tied::kNever));
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.handled_keys = {"expert_count"};
  traits.experts_share_length = true;
  return traits;
}

}  // namespace

const Architecture kQwen2Moe = {"qwen2moe", Traits(), Build};

}  // namespace weft
