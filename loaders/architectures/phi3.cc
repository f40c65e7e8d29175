// Phi-3 (Abdin et al. 2024, arXiv:2404.14219): LLaMA whose matrices are joined,
// queries, keys and values in one, gate and up in another, with a sliding
// window in every block.
//
// Models for long contexts divide the frequencies by factors (longrope, Ding et
// al. 2024, arXiv:2402.13753): one set up to the context of training, another
// beyond it. The context that a plan is made for decides, so that results do
// not depend on how long a text has become; without being asked, a plan keeps
// to the former.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  RopeOptions rope = m.RopeOf(RopeStyle::kHalves);
  rope.factors = LongRopeFactors(m);
  AttentionOptions attention = DefaultAttention(c);

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const Heads heads = JoinedHeads(m, block, RmsNorm(m, blk + "attn_norm", x));
    attention.window = c.WindowOf(block);
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), attention);
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed =
        JoinedFeedForward(m, block, RmsNorm(m, blk + "ffn_norm", x));
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

// Files of spring 2024 do not say it. Of mini (32 blocks) and medium (40),
// those for 4096 positions have one; the others' are as long as their context.
int64_t PublishedWindow(const ModelConfig& c) {
  return c.trained_context_length == 4096 &&
                 (c.block_count == 32 || c.block_count == 40)
             ? 2047
             : 0;
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.longrope = true;
  traits.handled_keys = {"attention.sliding_window"};
  traits.default_window = PublishedWindow;
  return traits;
}

}  // namespace

const Architecture kPhi3 = {"phi3", Traits(), Build};

}  // namespace weft
