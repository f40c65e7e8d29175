// Falcon-H1 (TII 2025, arXiv:2507.22448): attention and a Mamba 2 mixer side by
// side in every block, on the same rows.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/recurrent.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kHalves);

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const ValueId normed = RmsNorm(m, blk + "attn_norm", x);
    const Heads heads = SeparateHeads(m, block, normed);
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), DefaultAttention(c));
    const ValueId mixed = Mamba2Mixer(m, block, normed);
    x = Residual(m, blk + "attn_residual", attended, x);
    x = Residual(m, blk + "ssm_residual", mixed, x);
    // The only norm whose tensor has no ".weight".
    const ValueId weight = m.Vector(blk + "ffn_norm", {c.embedding_length});
    m.Name(blk + "ffn_norm");
    const ValueId fed = GatedFeedForward(
        m, block, m.RmsNorm(x, weight, AsWritten(c.norm_epsilon)),
        Activation::kSilu);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.keys = SsmKeys();
  return traits;
}

}  // namespace

const Architecture kFalconH1 = {"falcon-h1", Traits(), Build};

}  // namespace weft
