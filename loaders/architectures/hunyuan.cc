// Hunyuan, dense (Tencent 2025, Hunyuan-7B and smaller) and with experts
// (Hunyuan-A13B): LLaMA whose heads of queries and keys are normalised after
// they are rotated. `rope.freq_base` has the stretching to long contexts in it.
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
    heads = NormHeads(m, block, RotateHeads(m, block, heads, rope));
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

}  // namespace

const Architecture kHunyuanDense = {"hunyuan-dense", ModelTraits(), Build};
const Architecture kHunyuanMoe = {
    "hunyuan-moe", ExpertTraits(Gating::kSoftmax, /*normalize=*/true), Build};

}  // namespace weft
