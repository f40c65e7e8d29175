// LLaMA 1, 2 and 3, Mistral, SmolLM, TinyLlama (Touvron et al. 2023,
// arXiv:2302.13971 and 2307.09288; Jiang et al. 2023, arXiv:2310.06825).
//
// Pre-norm blocks of grouped-query attention with rotary positions and a gated
// feed-forward network. Projections may have biases; the output may be tied to
// the embedding; `rope_freqs.weight` divides the frequencies (LLaMA 3.1). With
// experts it is Mixtral (Jiang et al. 2024, arXiv:2401.04088).
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/experts.h"

namespace weft {
namespace {

ValueId Attention(ModelBuilder& m, int64_t block, ValueId x,
                  ValueId rope_factors) {
  const ModelConfig& c = m.config;
  const std::string blk = absl::StrCat("blk.", block, ".");
  const int64_t d = c.embedding_length;

  ValueId q = m.Linear(blk + "attn_q", x, c.head_count * c.key_length, d);
  ValueId k = m.Linear(blk + "attn_k", x, c.head_count_kv * c.key_length, d);
  ValueId v = m.Linear(blk + "attn_v", x, c.head_count_kv * c.value_length, d);

  RopeOptions rope;
  rope.head_dim = c.key_length;
  rope.rope_dims = c.rope_dimension_count;
  rope.base = AsWritten(c.rope_freq_base);
  rope.scale = AsWritten(c.rope_position_scale);
  rope.style = "interleaved";
  rope.factors = rope_factors;
  m.Name(blk + "rope_q");
  q = m.Rope(q, m.positions, rope);
  m.Name(blk + "rope_k");
  k = m.Rope(k, m.positions, rope);

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
      m.AttentionScores(q, keys, m.positions, m.sequence, c.head_count,
                        1.0 / std::sqrt(static_cast<double>(c.key_length)));
  const ValueId weights = m.Softmax(scores);
  const ValueId mixed =
      m.AttentionValues(weights, values, m.positions, m.sequence);
  return m.Linear(blk + "attn_output", mixed, d, c.head_count * c.value_length);
}

ValueId FeedForward(ModelBuilder& m, int64_t block, ValueId x) {
  const ModelConfig& c = m.config;
  const std::string blk = absl::StrCat("blk.", block, ".");
  const int64_t d = c.embedding_length;
  if (c.expert_count > 0) {
    return Experts(m, blk, x, c.expert_weights_norm.value_or(true));
  }
  const int64_t f = c.feed_forward_length;
  const ValueId gate = m.Linear(blk + "ffn_gate", x, f, d);
  const ValueId up = m.Linear(blk + "ffn_up", x, f, d);
  m.Name(blk + "ffn_act");
  const ValueId hidden = m.Mul(m.Silu(gate), up);
  return m.Linear(blk + "ffn_down", hidden, d, f);
}

ValueId Norm(ModelBuilder& m, const std::string& name, ValueId x) {
  const ValueId weight = m.Vector(name + ".weight", m.config.embedding_length);
  m.Name(name);
  return m.RmsNorm(x, weight, AsWritten(m.config.norm_epsilon));
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const int64_t d = c.embedding_length;
  const ValueId table = m.Matrix("token_embd", c.vocabulary_size, d);
  const ValueId output = m.OptionalMatrix("output", c.vocabulary_size, d);
  const ValueId rope_factors =
      m.OptionalVector("rope_freqs.weight", c.rope_dimension_count / 2);

  m.Name("token_embd");
  ValueId x = m.Embed(m.ids, table);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = absl::StrCat("blk.", block, ".");
    const ValueId attended =
        Attention(m, block, Norm(m, blk + "attn_norm", x), rope_factors);
    m.Name(blk + "attn_residual");
    x = m.Add(attended, x);
    const ValueId fed = FeedForward(m, block, Norm(m, blk + "ffn_norm", x));
    m.Name(blk + "ffn_residual");
    x = m.Add(fed, x);
  }
  m.Name("output_rows");
  x = m.TakeRows(x, m.output_rows);
  x = Norm(m, "output_norm", x);
  m.Name("output");
  const ValueId logits = m.Matmul(x, output == kNone ? table : output);
  m.graph().AddOutput("logits", logits);
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.handled_keys = {"expert_count"};
  return traits;
}

}  // namespace

const Architecture kLlama = {"llama", Traits(), Build};

}  // namespace weft
