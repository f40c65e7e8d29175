// Phi-3.5-MoE (Abdin et al. 2024, arXiv:2404.14219): Phi-3 with LayerNorm,
// biases, and two experts of SparseMixer (Liu et al. 2023, arXiv:2310.00811).
//
// The factors of longrope are those of Phi-3 (phi3.cc).
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  RopeOptions rope = m.RopeOf(RopeStyle::kHalves);
  rope.factors = LongRopeFactors(m);
  AttentionOptions attention = DefaultAttention(c);
  ExpertOptions experts = ExpertsOf(c);
  experts.score = ExpertOptions::Score::kSparseMixer;

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const Heads heads = SeparateHeads(
        m, block, LayerNorm(m, blk + "attn_norm", x), Bias::kRequired);
    attention.window = c.WindowOf(block);
    const ValueId attended =
        CachedAttention(m, block, RotateHeads(m, block, heads, rope), attention,
                        Bias::kRequired);
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed = FeedForwardOrExperts(
        m, block, LayerNorm(m, blk + "ffn_norm", x), experts);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = LayerNorm(m, "output_norm", OutputRows(m, x));
  m.hidden = x;
  m.graph().AddOutput("logits", m.Linear("output", x, c.vocabulary_size,
                                         c.embedding_length, Bias::kRequired));
}

ModelTraits Traits() {
  ModelTraits traits = ExpertTraits(Gating::kUnset, /*normalize=*/false,
                                    {"attention.sliding_window"});
  traits.fixed_router = true;  // a name that no number stands for
  traits.longrope = true;
  return traits;
}

}  // namespace

const Architecture kPhiMoe = {"phimoe", Traits(), Build};

}  // namespace weft
