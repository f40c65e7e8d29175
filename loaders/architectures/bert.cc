// BERT encoders (Devlin et al. 2018, arXiv:1810.04805).
//
// Learned positions and token types (type 0 throughout: one text, no pair);
// post-norm blocks of attention in both directions and a network with GELU,
// biases everywhere. What comes out is a vector per token; the text's own is
// made of these (ops/pooling.h). GELU is the approximation by tanh, as in
// other engines that read these files; the published models were trained with
// the exact one, which differs in the fourth digit.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

ValueId FeedForward(ModelBuilder& m, int64_t block, ValueId x) {
  const ModelConfig& c = m.config;
  const std::string blk = BlockPrefix(block);
  const int64_t d = c.embedding_length;
  const int64_t f = c.Block(block).feed_forward_length;
  const ValueId up = m.Linear(blk + "ffn_up", x, f, d);
  m.Name(blk + "ffn_act");
  return m.Linear(blk + "ffn_down", m.Gelu(up, GeluApproximation::kTanh), d, f);
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const int64_t d = c.embedding_length;
  const ValueId tokens = EmbedTokens(m);
  const ValueId position_table =
      m.Matrix("position_embd", c.trained_context_length, d);
  const int64_t types = c.token_type_count > 0 ? c.token_type_count : 2;
  const ValueId type = m.RowVector("token_types", types, d, 0);

  m.Name("token_types");
  ValueId x = m.Add(tokens, type);
  m.Name("position_embd");
  x = m.Add(x, m.Embed(m.positions, position_table));
  x = LayerNorm(m, "token_embd_norm", x);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const ValueId attended = CachedAttention(
        m, block, SeparateHeads(m, block, x), DefaultAttention(c));
    x = LayerNorm(m, blk + "attn_output_norm",
                  Residual(m, blk + "attn_residual", attended, x));
    const ValueId fed = FeedForward(m, block, x);
    x = LayerNorm(m, blk + "layer_output_norm",
                  Residual(m, blk + "ffn_residual", fed, x));
  }
  m.graph().AddOutput("hidden", OutputRows(m, x));
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.norm = ModelTraits::Norm::kLayer;
  traits.rope = false;
  traits.encoder = true;
  traits.handled_keys = {"attention.causal"};
  return traits;
}

}  // namespace

const Architecture kBert = {"bert", Traits(), Build};

}  // namespace weft
