// GLM-4.5 to 4.7 (GLM-4.5 Team 2025, arXiv:2508.06471): grouped-query attention
// with biases that turns half of each head, and experts as DeepSeek-V3 has
// them. The larger models normalise queries and keys, Air does not. The last
// block predicts a token further on (next_token_block.h); plain decoding leaves
// it out.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"
#include "loaders/architectures/next_token_block.h"

namespace weft {
namespace {

ValueId Block(ModelBuilder& m, int64_t block, ValueId x) {
  const ModelConfig& c = m.config;
  ExpertOptions experts = ExpertsOf(c);
  experts.choice_bias = Bias::kRequired;
  const std::string blk = BlockPrefix(block);
  Heads heads = SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x),
                              Bias::kRequired);
  // All blocks have these norms, or none.
  if (m.HasTensor("blk.0.attn_q_norm.weight")) {
    heads = NormHeads(m, block, heads);
  }
  heads = RotateHeads(m, block, heads, m.RopeOf(RopeStyle::kHalves));
  const ValueId attended =
      CachedAttention(m, block, heads, DefaultAttention(c));
  x = Residual(m, blk + "attn_residual", attended, x);
  const ValueId fed = FeedForwardOrExperts(
      m, block, RmsNorm(m, blk + "post_attention_norm", x), experts);
  return Residual(m, blk + "ffn_residual", fed, x);
}

void Build(ModelBuilder& m) {
  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < m.config.block_count && m.ok(); ++block) {
    x = Block(m, block, x);
  }
  x = NormedOutputRows(m, "output_norm", x);
  m.graph().AddOutput("logits", Logits(m, x, Tied::kNever));
}

void BuildNextTokenBlock(ModelBuilder& m) {
  NextTokenBlock(m, HandsOn::kRows,
                 [&m](int64_t block, ValueId x) { return Block(m, block, x); });
}

ModelTraits Traits() {
  ModelTraits traits =
      ExpertTraits(Gating::kSigmoid, /*normalize=*/true, {kNextTokenBlocks});
  traits.rotates_part = true;
  return traits;
}

}  // namespace

const Architecture kGlm4Moe = {"glm4moe", Traits(), Build, BuildNextTokenBlock};

}  // namespace weft
