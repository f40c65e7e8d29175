// Ling 2.0 and Ring (Ling Team 2025, arXiv:2510.22115): grouped-query attention
// by one product, each head normalised and half of it turned, and experts in
// groups as DeepSeek-V3 has them. Blocks at the end may predict tokens further
// on; plain decoding leaves them out.
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
    const Heads heads = NormHeads(
        m, block, JoinedHeads(m, block, RmsNorm(m, blk + "attn_norm", x)));
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

}  // namespace

const Architecture kBailingMoe2 = {
    "bailingmoe2",
    ExpertTraits(Gating::kSigmoid, /*normalize=*/true, {kNextTokenBlocks}),
    Build};

}  // namespace weft
