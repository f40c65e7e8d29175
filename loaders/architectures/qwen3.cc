// Qwen3 (Yang et al. 2025, arXiv:2505.09388): Qwen2 without biases, each head
// of queries and keys normalised before it is rotated. The text part of
// Qwen3-VL (2025) is this too: its sections of rotation are interleaved, which
// makes no difference to text.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kHalves);

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    Heads heads = SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x));
    heads = RotateHeads(m, block, NormHeads(m, block, heads), rope);
    const ValueId attended =
        CachedAttention(m, block, heads, DefaultAttention(c));
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed = GatedFeedForward(
        m, block, RmsNorm(m, blk + "ffn_norm", x), Activation::kSilu);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

// Qwen3-Embedding takes the last token's vector, Qwen3-Reranker (both Zhang et
// al. 2025, arXiv:2506.05176) the logits of "yes" and "no" there.
ModelTraits Traits() {
  ModelTraits traits;
  traits.ranks = true;
  return traits;
}

}  // namespace

const Architecture kQwen3 = {"qwen3", Traits(), Build};
const Architecture kQwen3Vl = {"qwen3vl", Traits(), Build};

}  // namespace weft
