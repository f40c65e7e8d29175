// BERT encoders (Devlin et al. 2018, arXiv:1810.04805).
//
// Learned positions and token types (type 0 throughout: one text, no pair);
// post-norm blocks of attention in both directions and a network with GELU,
// biases everywhere. What comes out is a vector per token; the text's own is
// made of these (ops/pooling.h). GELU is the approximation by tanh, as in
// other engines that read these files; the published models were trained with
// the exact one, which differs in the fourth digit.
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "loaders/architectures/architectures.h"

namespace weft {
namespace {

ValueId Attention(ModelBuilder& m, int64_t block, ValueId x) {
  const ModelConfig& c = m.config;
  const std::string blk = absl::StrCat("blk.", block, ".");
  const int64_t d = c.embedding_length;
  const int64_t key_columns = c.head_count_kv * c.key_length;
  const int64_t value_columns = c.head_count_kv * c.value_length;
  const ValueId q = m.Linear(blk + "attn_q", x, c.head_count * c.key_length, d);
  const ValueId k = m.Linear(blk + "attn_k", x, key_columns, d);
  const ValueId v = m.Linear(blk + "attn_v", x, value_columns, d);

  const ValueId key_state = m.KeyState(block, c.head_count_kv, c.key_length);
  const ValueId value_state =
      m.ValueState(block, c.head_count_kv, c.value_length);
  m.Name(blk + "keys");
  const ValueId keys = m.KvWrite(key_state, k, m.positions, m.sequence);
  m.Name(blk + "values");
  const ValueId values = m.KvWrite(value_state, v, m.positions, m.sequence);
  m.graph().AddOutput(blk + "keys", keys);
  m.graph().AddOutput(blk + "values", values);

  m.Name(blk + "attention");
  const ValueId scores =
      m.AttentionScores(q, keys, m.last_positions, m.sequence, c.head_count,
                        1.0 / std::sqrt(static_cast<double>(c.key_length)));
  const ValueId mixed = m.AttentionValues(m.Softmax(scores), values,
                                          m.last_positions, m.sequence);
  return m.Linear(blk + "attn_output", mixed, d, c.head_count * c.value_length);
}

ValueId FeedForward(ModelBuilder& m, int64_t block, ValueId x) {
  const ModelConfig& c = m.config;
  const std::string blk = absl::StrCat("blk.", block, ".");
  const int64_t d = c.embedding_length;
  const int64_t f = c.feed_forward_length;
  const ValueId up = m.Linear(blk + "ffn_up", x, f, d);
  m.Name(blk + "ffn_act");
  return m.Linear(blk + "ffn_down", m.Gelu(up, "tanh"), d, f);
}

ValueId Norm(ModelBuilder& m, const std::string& name, ValueId x) {
  const int64_t d = m.config.embedding_length;
  const ValueId weight = m.Vector(name + ".weight", d);
  const ValueId bias = m.Vector(name + ".bias", d);
  m.Name(name);
  return m.LayerNorm(x, weight, bias, AsWritten(m.config.norm_epsilon));
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const int64_t d = c.embedding_length;
  const ValueId table = m.Matrix("token_embd", c.vocabulary_size, d);
  const ValueId position_table =
      m.Matrix("position_embd", c.trained_context_length, d);
  const int64_t types = c.token_type_count > 0 ? c.token_type_count : 2;
  const ValueId type = m.RowVector("token_types", types, d, 0);

  m.Name("token_embd");
  ValueId x = m.Embed(m.ids, table);
  m.Name("token_types");
  x = m.Add(x, type);
  m.Name("position_embd");
  x = m.Add(x, m.Embed(m.positions, position_table));
  x = Norm(m, "token_embd_norm", x);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = absl::StrCat("blk.", block, ".");
    const ValueId attended = Attention(m, block, x);
    m.Name(blk + "attn_residual");
    x = Norm(m, blk + "attn_output_norm", m.Add(attended, x));
    const ValueId fed = FeedForward(m, block, x);
    m.Name(blk + "ffn_residual");
    x = Norm(m, blk + "layer_output_norm", m.Add(fed, x));
  }
  m.Name("output_rows");
  m.graph().AddOutput("hidden", m.TakeRows(x, m.output_rows));
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
