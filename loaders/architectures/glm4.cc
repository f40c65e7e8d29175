// GLM-4-0414 and GLM-4.1V's text part (Zhipu AI 2025, arXiv:2406.12793 and
// 2507.01006): a half of each head is rotated, norms stand before and behind
// attention and feed-forward network, and gate and up are one matrix.
//
// Files with sections of rotation (ModelConfig::rope_sections) have their rows
// of queries and keys reordered, so that pairs lie half of what rotates apart.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope =
      m.RopeOf(c.rope_sections ? RopeStyle::kHalves : RopeStyle::kInterleaved);

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const Heads heads =
        SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x));
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), DefaultAttention(c));
    x = Residual(m, blk + "attn_residual",
                 RmsNorm(m, blk + "post_attention_norm", attended), x);
    const ValueId fed =
        JoinedFeedForward(m, block, RmsNorm(m, blk + "ffn_norm", x));
    x = Residual(m, blk + "ffn_residual",
                 RmsNorm(m, blk + "post_ffw_norm", fed), x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.rotates_part = true;
  return traits;
}

}  // namespace

const Architecture kGlm4 = {"glm4", Traits(), Build};

}  // namespace weft
