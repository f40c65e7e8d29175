// OLMoE (Muennighoff et al. 2024, arXiv:2409.02060): LLaMA with norms of all
// queries and all keys, whose feed-forward network is many small experts.
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
    heads = RotateHeads(m, block, NormRows(m, block, heads), rope);
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

const Architecture kOlmoe = {
    "olmoe", ExpertTraits(Gating::kSoftmax, /*normalize=*/false), Build};

}  // namespace weft
