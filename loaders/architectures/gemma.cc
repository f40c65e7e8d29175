// Gemma (Gemma Team 2024, arXiv:2403.08295): LLaMA with embeddings scaled by
// the root of their length and a gate of GELU instead of SiLU. Norm weights are
// stored as they are used, 1 added.
#include <cmath>

#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kHalves);

  ValueId x = m.Scale(EmbedTokens(m), std::sqrt(c.embedding_length));
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const Heads heads =
        SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x));
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), DefaultAttention(c));
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed = GatedFeedForward(
        m, block, RmsNorm(m, blk + "ffn_norm", x), Activation::kGeluTanh);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

}  // namespace

const Architecture kGemma = {"gemma", ModelTraits(), Build};

}  // namespace weft
