// MiniMax-M2 (MiniMax 2025): grouped-query attention with norms of all queries
// and all keys, half of each head turned, and in every block experts that are
// chosen by sigmoids with a bias.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kHalves);
  ExpertOptions experts = ExpertsOf(c);
  experts.choice_bias = Bias::kRequired;

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const Heads heads = NormRows(
        m, block, SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x)));
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), DefaultAttention(c));
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed = FeedForwardOrExperts(
        m, block, RmsNorm(m, blk + "ffn_norm", x), experts);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x, Tied::kNever));
}

ModelTraits Traits() {
  ModelTraits traits = ExpertTraits(Gating::kSigmoid, /*normalize=*/true);
  traits.rotates_part = true;
  return traits;
}

}  // namespace

const Architecture kMiniMaxM2 = {"minimax-m2", Traits(), Build};

}  // namespace weft
