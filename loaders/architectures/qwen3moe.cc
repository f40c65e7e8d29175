// Qwen3-MoE (Yang et al. 2025, arXiv:2505.09388) and the text part of
// Qwen3-VL-MoE (Qwen Team 2025, arXiv:2511.21631): Qwen3 whose feed-forward
// network is many small experts.
//
// Qwen3-VL rotates by three positions; those of a text are the same number, and
// so its rotation is Qwen3's.
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
    Heads heads = SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x));
    heads = RotateHeads(m, block, NormHeads(m, block, heads), rope);
    const ValueId attended =
        CachedAttention(m, block, heads, DefaultAttention(c));
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed = FeedForwardOrExperts(
        m, block, RmsNorm(m, blk + "ffn_norm", x), experts);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

ModelTraits Traits() {
  ModelTraits traits = ExpertTraits(Gating::kSoftmax, /*normalize=*/true);
  traits.experts_share_length = true;
  return traits;
}

}  // namespace

const Architecture kQwen3Moe = {"qwen3moe", Traits(), Build};
const Architecture kQwen3VlMoe = {"qwen3vlmoe", Traits(), Build};

}  // namespace weft
