// LLaMA 1, 2 and 3, Mistral, SmolLM, TinyLlama (Touvron et al. 2023,
// arXiv:2302.13971 and 2307.09288; Jiang et al. 2023, arXiv:2310.06825).
//
// Pre-norm blocks of grouped-query attention with rotary positions and a gated
// feed-forward network. Projections may have biases; the output may be tied to
// the embedding; `rope_freqs.weight` divides the frequencies (LLaMA 3.1). With
// experts it is Mixtral (Jiang et al. 2024, arXiv:2401.04088).
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  RopeOptions rope = m.RopeOf(RopeStyle::kInterleaved);
  rope.factors = m.OptionalRopeFactors("rope_freqs.weight");
  const ExpertOptions experts = ExpertsOf(c);

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

ModelTraits Traits() {
  ModelTraits traits;
  traits.handled_keys = {"expert_count"};
  traits.default_weights_norm = true;
  return traits;
}

}  // namespace

const Architecture kLlama = {"llama", Traits(), Build};

}  // namespace weft
