// gpt-oss (OpenAI 2025, arXiv:2508.10925): mixtures of experts with biases
// everywhere. Every other block, from the first on, has a sliding window; each
// head has a sink, a score that takes part in softmax and has no value. Gate
// and up of an expert are clamped, and experts are weighted with the softmax of
// the chosen.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"

namespace weft {
namespace {

constexpr int64_t kPublishedWindow = 128;

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kHalves);
  AttentionOptions attention = DefaultAttention(c);
  ExpertOptions experts = ExpertsOf(c);
  experts.biases = Bias::kRequired;
  experts.activation = Activation::kClamped;

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    Heads heads = SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x),
                                Bias::kRequired);
    heads = RotateHeads(m, block, heads, rope);
    heads.sinks =
        m.Vector(blk + "attn_sinks.weight", {c.Block(block).head_count});
    attention.window = c.WindowOf(block);
    const ValueId attended =
        CachedAttention(m, block, heads, attention, Bias::kRequired);
    x = Residual(m, blk + "attn_residual", attended, x);
    // The norm before the network, whatever its name.
    const ValueId fed = FeedForwardOrExperts(
        m, block, RmsNorm(m, blk + "post_attention_norm", x), experts);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x, Tied::kNever));
}

ModelTraits Traits() {
  // Weights that are a softmax of the chosen sum to 1 whatever files say.
  ModelTraits traits =
      ExpertTraits(Gating::kSoftmaxOfChosen, /*normalize=*/std::nullopt,
                   {"attention.sliding_window"});
  traits.fixed_router = true;
  traits.default_window = [](const ModelConfig&) { return kPublishedWindow; };
  traits.needs_window = true;
  traits.window_period = 2;
  return traits;
}

}  // namespace

const Architecture kGptOss = {"gpt-oss", Traits(), Build};

}  // namespace weft
