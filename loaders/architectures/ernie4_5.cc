// ERNIE 4.5 (Baidu 2025, "ERNIE 4.5 Technical Report"): LLaMA; with experts,
// these are chosen by their likelihood and a bias, and some are for all tokens.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kInterleaved);
  ExpertOptions experts = ExpertsOf(c);
  experts.least_sum = 1e-12;

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const Heads heads =
        SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x));
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), DefaultAttention(c));
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed = FeedForwardOrExperts(
        m, block, RmsNorm(m, blk + "ffn_norm", x), experts);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

}  // namespace

const Architecture kErnie45 = {"ernie4_5", ModelTraits(), Build};
const Architecture kErnie45Moe = {
    "ernie4_5-moe", ExpertTraits(Gating::kSoftmax, /*normalize=*/true), Build};

}  // namespace weft
