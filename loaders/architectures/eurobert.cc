// LLaMA's blocks as encoders: EuroBERT (Boizard et al. 2025, arXiv:2503.05500)
// and llama-embed-nemotron (NVIDIA 2025), whose pairs of rotation are
// neighbours as in files of LLaMA.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/encoder.h"

namespace weft {
namespace {

template <RopeStyle kStyle>
void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  RopeOptions rope = m.RopeOf(kStyle);
  rope.factors = m.OptionalRopeFactors("rope_freqs.weight");

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const Heads heads =
        SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x));
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), DefaultAttention(c));
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed = GatedFeedForward(
        m, block, RmsNorm(m, blk + "ffn_norm", x), Activation::kSilu);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  GiveVectors(m, RmsNorm(m, "output_norm", x));
}

ModelTraits Traits() {
  ModelTraits traits = EncoderTraits();
  traits.norm = ModelTraits::Norm::kRms;
  traits.rope = true;
  return traits;
}

}  // namespace

const Architecture kEuroBert = {"eurobert", Traits(),
                                Build<RopeStyle::kHalves>};
const Architecture kLlamaEmbed = {"llama-embed", Traits(),
                                  Build<RopeStyle::kInterleaved>};

}  // namespace weft
