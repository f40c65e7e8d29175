// DeepSeek-V2 and V3 (DeepSeek-AI 2024, arXiv:2405.04434 and 2412.19437), and
// who took their form: R1, Kimi-K2, GLM-4.7-Flash, Mistral Large 3.
//
// Multi-head latent attention (latent_attention.h) and many small experts after
// the first blocks, with one or two that all tokens share. V2-Lite has no
// latent of queries and a softmax router. Where YaRN stretches the context, its
// magnitude is in the scale of scores; sines and cosines have none. V3's last
// block predicts a token further on (next_token_block.h).
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"
#include "loaders/architectures/latent_attention.h"
#include "loaders/architectures/next_token_block.h"

namespace weft {
namespace {

// Where files do not say it, the choice has a bias in those of V3's form alone:
// sigmoids there, whose weights sum to 1. V2 has a softmax, and knows a group
// by its best expert.
ExpertOptions Router(const ModelBuilder& m) {
  const ModelConfig& c = m.config;
  ExpertOptions experts = ExpertsOf(c);
  if (c.expert_gating == Gating::kUnset &&
      m.HasTensor(BlockPrefix(c.leading_dense_block_count) +
                  "exp_probs_b.bias")) {
    experts.score = ExpertOptions::Score::kSigmoid;
  }
  const bool softmax = experts.score == ExpertOptions::Score::kSoftmax;
  experts.normalize = c.expert_weights_norm.value_or(!softmax);
  if (softmax) experts.group_best = 1;
  return experts;
}

ValueId Block(ModelBuilder& m, int64_t block, ValueId x,
              const LatentAttentionOptions& attention,
              const ExpertOptions& experts) {
  const std::string blk = BlockPrefix(block);
  const ValueId attended =
      LatentAttention(m, block, RmsNorm(m, blk + "attn_norm", x), attention);
  x = Residual(m, blk + "attn_residual", attended, x);
  const ValueId fed =
      FeedForwardOrExperts(m, block, RmsNorm(m, blk + "ffn_norm", x), experts);
  return Residual(m, blk + "ffn_residual", fed, x);
}

void Build(ModelBuilder& m) {
  const LatentAttentionOptions attention = LatentAttentionOf(m);
  const ExpertOptions experts = Router(m);
  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < m.config.block_count && m.ok(); ++block) {
    x = Block(m, block, x, attention, experts);
  }
  x = NormedOutputRows(m, "output_norm", x);
  m.graph().AddOutput("logits", Logits(m, x));
}

void BuildNextTokenBlock(ModelBuilder& m) {
  const LatentAttentionOptions attention = LatentAttentionOf(m);
  const ExpertOptions experts = Router(m);
  NextTokenBlock(m, HandsOn::kRows, [&](int64_t block, ValueId x) {
    return Block(m, block, x, attention, experts);
  });
}

ModelTraits Traits() {
  ModelTraits traits = ExpertTraits(Gating::kUnset, /*normalize=*/std::nullopt,
                                    {kNextTokenBlocks});
  traits.keys = LatentKeys();
  traits.yarn_scales_scores = true;
  return traits;
}

}  // namespace

const Architecture kDeepseek2 = {"deepseek2", Traits(), Build,
                                 BuildNextTokenBlock};

}  // namespace weft
