// EXAONE 4 (LG AI Research 2025, arXiv:2507.11407): OLMo 2's norms behind each
// part, with those of queries and keys by head.
//
// The 32B model has a sliding window in three blocks of four, and positions in
// those alone; the 1.2B model has no window, and positions everywhere.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  RopeOptions rope = m.RopeOf(RopeStyle::kHalves);
  rope.factors = m.OptionalRopeFactors("rope_freqs.weight");
  AttentionOptions attention = DefaultAttention(c);

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    Heads heads = NormHeads(m, block, SeparateHeads(m, block, x));
    if (c.sliding_blocks.empty() || c.Slides(block)) {
      heads = RotateHeads(m, block, heads, rope);
    }
    attention.window = c.WindowOf(block);
    const ValueId attended = CachedAttention(m, block, heads, attention);
    x = Residual(m, blk + "attn_residual",
                 RmsNorm(m, blk + "post_attention_norm", attended), x);
    const ValueId fed = GatedFeedForward(m, block, x, Activation::kSilu);
    x = Residual(m, blk + "ffn_residual",
                 RmsNorm(m, blk + "post_ffw_norm", fed), x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

// The 32B model is known by its blocks where its file does not say it.
int64_t PublishedWindow(const ModelConfig& c) {
  return c.block_count == 64 ? 4096 : 0;
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.handled_keys = {"attention.sliding_window"};
  traits.default_window = PublishedWindow;
  traits.window_period = 4;
  return traits;
}

}  // namespace

const Architecture kExaone4 = {"exaone4", Traits(), Build};

}  // namespace weft
