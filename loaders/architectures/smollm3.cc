// SmolLM3 (Hugging Face 2025): LLaMA that does not rotate in every fourth block
// (NoPE: Yang et al. 2025, arXiv:2501.18795).
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

// The last of every so many blocks knows no positions; 0: all do.
constexpr char kInterval[] = "no_rope_layer_interval";
constexpr double kPublishedInterval = 4;

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kInterleaved);
  const int64_t interval = static_cast<int64_t>(c.Number(kInterval));

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    Heads heads = SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x));
    if (interval == 0 || (block + 1) % interval != 0) {
      heads = RotateHeads(m, block, heads, rope);
    }
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

ModelTraits Traits() {
  ModelTraits traits;
  traits.keys = {{kInterval, 0, 1 << 16, kPublishedInterval}};
  return traits;
}

}  // namespace

const Architecture kSmolLm3 = {"smollm3", Traits(), Build};

}  // namespace weft
