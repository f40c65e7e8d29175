// Qwen2 and Qwen2.5 (Yang et al. 2024, arXiv:2407.10671): LLaMA with biases on
// queries, keys and values, and rotary pairs that lie half a head apart.
//
// Qwen2-VL and Qwen2.5-VL (Wang et al. 2024, arXiv:2409.12191) have it as their
// text part: of the three positions that a picture's parts have, those of a
// token of text are all the same, and the rotation by sections is this one.
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
    const Heads heads = SeparateHeads(
        m, block, RmsNorm(m, blk + "attn_norm", x), Bias::kRequired);
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), DefaultAttention(c));
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed = GatedFeedForward(
        m, block, RmsNorm(m, blk + "ffn_norm", x), Activation::kSilu);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

}  // namespace

const Architecture kQwen2 = {"qwen2", ModelTraits(), Build};
const Architecture kQwen2Vl = {"qwen2vl", ModelTraits(), Build};

}  // namespace weft
