// GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask
// Learners").
//
// Learned positions, added to the tokens; LayerNorm before each part, biases
// everywhere, queries, keys and values by one product, and a feed-forward
// network of one hidden layer with GELU.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

ValueId FeedForward(ModelBuilder& m, int64_t block, ValueId x) {
  const std::string blk = BlockPrefix(block);
  const int64_t d = m.config.embedding_length;
  const int64_t f = m.config.Block(block).feed_forward_length;
  const ValueId hidden = m.Linear(blk + "ffn_up", x, f, d, Bias::kRequired);
  m.Name(blk + "ffn_act");
  return m.Linear(blk + "ffn_down", m.Gelu(hidden, GeluApproximation::kTanh), d,
                  f, Bias::kRequired);
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const ValueId tokens = EmbedTokens(m);
  const ValueId table =
      m.Matrix("position_embd", c.trained_context_length, c.embedding_length);
  m.Name("position_embd");
  ValueId x = m.Add(tokens, m.Embed(m.positions, table));
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const Heads heads = JoinedHeads(
        m, block, LayerNorm(m, blk + "attn_norm", x), Bias::kRequired);
    const ValueId attended =
        CachedAttention(m, block, heads, DefaultAttention(c), Bias::kRequired);
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed =
        FeedForward(m, block, LayerNorm(m, blk + "ffn_norm", x));
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = LayerNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.norm = ModelTraits::Norm::kLayer;
  traits.rope = false;
  return traits;
}

}  // namespace

const Architecture kGpt2 = {"gpt2", Traits(), Build};

}  // namespace weft
