// dots.llm1 (rednote-hilab 2025, arXiv:2506.05767): Qwen3's attention, and
// experts as DeepSeek-V3 has them.
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
  m.graph().AddOutput("logits", Logits(m, x, Tied::kNever));
}

}  // namespace

const Architecture kDots1 = {
    "dots1", ExpertTraits(Gating::kSigmoid, /*normalize=*/true), Build};

}  // namespace weft
