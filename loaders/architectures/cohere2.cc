// Command R7B and Command A (Cohere 2025, arXiv:2504.00698): LayerNorm without
// bias, attention and feed-forward network side by side on one norm, three
// blocks of four with a sliding window, and positions in those alone.
//
// Published files say the window and the number that logits are multiplied by;
// where one does not, they are those of the published models.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

constexpr char kLogitScale[] = "logit_scale";
constexpr double kPublishedLogitScale = 0.25;
constexpr int64_t kPublishedWindow = 4096;

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kInterleaved);
  AttentionOptions attention = DefaultAttention(c);

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const ValueId normed = LayerNorm(m, blk + "attn_norm", x, Bias::kOptional);
    Heads heads = SeparateHeads(m, block, normed);
    if (c.Slides(block)) heads = RotateHeads(m, block, heads, rope);
    attention.window = c.WindowOf(block);
    const ValueId attended = CachedAttention(m, block, heads, attention);
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed = GatedFeedForward(m, block, normed, Activation::kSilu);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = LayerNorm(m, "output_norm", OutputRows(m, x), Bias::kOptional);
  m.graph().AddOutput("logits", m.Scale(Logits(m, x), c.Number(kLogitScale)));
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.norm = ModelTraits::Norm::kLayer;
  traits.handled_keys = {"attention.sliding_window"};
  traits.default_window = [](const ModelConfig&) { return kPublishedWindow; };
  traits.needs_window = true;
  traits.window_period = 4;
  traits.keys = {{kLogitScale, 1e-6, 1e6, kPublishedLogitScale}};
  return traits;
}

}  // namespace

const Architecture kCohere2 = {"cohere2", Traits(), Build};

}  // namespace weft
