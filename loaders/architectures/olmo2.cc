// OLMo 2 (OLMo Team 2024, arXiv:2501.00656): LLaMA with its norms behind
// attention and feed-forward network instead of before, and with norms of all
// queries and all keys.
//
// OLMo 3 (2025) has the same name in files, and a sliding window in three
// blocks of four; only the fourth is stretched to longer contexts.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kHalves);
  const RopeOptions rope_of_window = m.UnscaledRopeOf(RopeStyle::kHalves);
  AttentionOptions attention = DefaultAttention(c);

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    Heads heads = NormRows(m, block, SeparateHeads(m, block, x));
    heads =
        RotateHeads(m, block, heads, c.Slides(block) ? rope_of_window : rope);
    attention.window = c.WindowOf(block);
    const ValueId attended = CachedAttention(m, block, heads, attention);
    x = Residual(m, blk + "attn_residual",
                 RmsNorm(m, blk + "post_attention_norm", attended), x);
    const ValueId fed = GatedFeedForward(m, block, x, Activation::kSilu);
    x = Residual(m, blk + "ffn_residual",
                 RmsNorm(m, blk + "post_ffw_norm", fed), x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x, Tied::kNever));
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.handled_keys = {"attention.sliding_window"};
  traits.window_period = 4;
  return traits;
}

}  // namespace

const Architecture kOlmo2 = {"olmo2", Traits(), Build};

}  // namespace weft
