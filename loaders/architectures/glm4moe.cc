// GLM-4.5 to 4.7 (GLM-4.5 Team 2025, arXiv:2508.06471): grouped-query attention
// with biases that turns half of each head, and experts as DeepSeek-V3 has
// them. The larger models normalise queries and keys, Air does not. The last
// block predicts a token further on; plain decoding leaves it out.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kHalves);
  const bool norms_heads = m.HasTensor("blk.0.attn_q_norm.weight");
  ExpertOptions experts = ExpertsOf(c);
  experts.choice_bias = Bias::kRequired;

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    Heads heads = SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x),
                                Bias::kRequired);
    if (norms_heads) heads = NormHeads(m, block, heads);
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), DefaultAttention(c));
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed = FeedForwardOrExperts(
        m, block, RmsNorm(m, blk + "post_attention_norm", x), experts);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x, Tied::kNever));
}

ModelTraits Traits() {
  ModelTraits traits =
      ExpertTraits(Gating::kSigmoid, /*normalize=*/true, {kNextTokenBlocks});
  traits.rotates_part = true;
  return traits;
}

}  // namespace

const Architecture kGlm4Moe = {"glm4moe", Traits(), Build};

}  // namespace weft
