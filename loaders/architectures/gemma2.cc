// Gemma 2 (Gemma Team 2024, arXiv:2408.00118): Gemma with norms behind
// attention and feed-forward network too, soft caps on scores and logits, and a
// sliding window in every other block, the first included.
//
// Scores are scaled by the head length; the 27B model, which is known by its 46
// blocks, by the embedding's share of a head.
#include <cmath>

#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

constexpr char kScoreCap[] = "attn_logit_softcapping";
constexpr char kLogitCap[] = "final_logit_softcapping";
constexpr int64_t kBlocksOf27B = 46;
constexpr int64_t kPublishedWindow = 4096;  // early files do not say it

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kHalves);
  AttentionOptions attention = DefaultAttention(c);
  attention.softcap = c.Number(kScoreCap);
  if (c.block_count == kBlocksOf27B) {
    attention.scale = std::sqrt(static_cast<double>(c.head_count) /
                                static_cast<double>(c.embedding_length));
  }

  ValueId x = m.Scale(EmbedTokens(m), std::sqrt(c.embedding_length));
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    attention.window = c.WindowOf(block);
    const Heads heads =
        SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x));
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), attention);
    x = Residual(m, blk + "attn_residual",
                 RmsNorm(m, blk + "post_attention_norm", attended), x);
    const ValueId fed = GatedFeedForward(
        m, block, RmsNorm(m, blk + "ffn_norm", x), Activation::kGeluTanh);
    x = Residual(m, blk + "ffn_residual",
                 RmsNorm(m, blk + "post_ffw_norm", fed), x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  ValueId logits = Logits(m, x);
  if (c.Number(kLogitCap) > 0) logits = m.Softcap(logits, c.Number(kLogitCap));
  m.graph().AddOutput("logits", logits);
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.handled_keys = {"attention.sliding_window"};
  traits.default_window = [](const ModelConfig&) { return kPublishedWindow; };
  traits.needs_window = true;
  traits.window_period = 2;
  traits.keys = {{kScoreCap, 0, 1e6, 50}, {kLogitCap, 0, 1e6, 30}};
  return traits;
}

}  // namespace

const Architecture kGemma2 = {"gemma2", Traits(), Build};

}  // namespace weft
