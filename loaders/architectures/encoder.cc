#include "loaders/architectures/encoder.h"

#include <algorithm>

namespace weft {

ModelTraits EncoderTraits() {
  ModelTraits traits;
  traits.norm = ModelTraits::Norm::kLayer;
  traits.rope = false;
  traits.encoder = true;
  traits.handled_keys = {"attention.causal"};
  return traits;
}

ValueId EncoderInput(ModelBuilder& m, bool positions) {
  const ModelConfig& c = m.config;
  const int64_t d = c.embedding_length;
  ValueId x = EmbedTokens(m);
  if (m.HasTensor("token_types.weight")) {
    const int64_t types = c.token_type_count > 0 ? c.token_type_count : 2;
    const ValueId type = m.RowVector("token_types", types, d, 0);
    m.Name("token_types");
    x = m.Add(x, type);
  }
  if (positions) {
    const ValueId table =
        m.Matrix("position_embd", c.trained_context_length, d);
    m.Name("position_embd");
    x = m.Add(x, m.Embed(m.positions, table));
  }
  return LayerNorm(m, "token_embd_norm", x);
}

ValueId PostNormBlock(ModelBuilder& m, int64_t block, ValueId x,
                      ValueId attended,
                      const std::function<ValueId(ValueId)>& feed_forward) {
  const std::string blk = BlockPrefix(block);
  const ValueId y = LayerNorm(m, blk + "attn_output_norm",
                              Residual(m, blk + "attn_residual", attended, x));
  const ValueId fed = feed_forward(y);
  return LayerNorm(m, blk + "layer_output_norm",
                   Residual(m, blk + "ffn_residual", fed, y));
}

ValueId GeluFeedForward(ModelBuilder& m, int64_t block, ValueId x) {
  const std::string blk = BlockPrefix(block);
  const int64_t d = m.config.embedding_length;
  const int64_t f = m.config.Block(block).feed_forward_length;
  const ValueId up = m.Linear(blk + "ffn_up", x, f, d);
  m.Name(blk + "ffn_act");
  return m.Linear(blk + "ffn_down", m.Gelu(up, GeluApproximation::kTanh), d, f);
}

ValueId ClassifierHead(ModelBuilder& m, ValueId pooled) {
  const ModelConfig& c = m.config;
  const int64_t d = c.embedding_length;
  const bool output = m.HasTensor("cls.output.weight");
  ValueId x = pooled;
  if (!output || m.HasTensor("cls.weight")) {
    x = m.Linear("cls", x, output ? d : c.score_count, d);
    m.Name("cls.tanh");
    x = m.Softcap(x, 1);
  }
  return output ? m.Linear("cls.output", x, c.score_count, d) : x;
}

void GiveVectors(ModelBuilder& m, ValueId x, TextHead head) {
  if (!IsOfText(m.gives)) {
    m.graph().AddOutput(NameOf(m.gives), OutputRows(m, x));
    return;
  }
  m.Name("pooled");
  const bool mean =
      m.config.pooling == Pooling::kMean || m.config.pooling == Pooling::kNone;
  const ValueId pooled = mean ? m.MeanRows(x, m.sequence, m.output_rows)
                              : m.TakeRows(x, m.output_rows);
  m.graph().AddOutput(NameOf(m.gives), head(m, pooled));
}

void BuildRotatedBert(ModelBuilder& m, FeedForward feed_forward) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kHalves);
  ValueId x = EncoderInput(m, /*positions=*/false);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const Heads heads = RotateHeads(m, block, SeparateHeads(m, block, x), rope);
    const ValueId attended =
        CachedAttention(m, block, heads, DefaultAttention(c));
    x = PostNormBlock(m, block, x, attended,
                      [&](ValueId y) { return feed_forward(m, block, y); });
  }
  GiveVectors(m, x);
}

}  // namespace weft
