#include "loaders/architectures/blocks.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/next_token_block.h"

namespace weft {
namespace {

Heads HeadsByThree(ModelBuilder& m, int64_t block, ValueId x, Bias bias) {
  const ModelConfig& c = m.config;
  const std::string blk = BlockPrefix(block);
  const int64_t d = c.embedding_length;
  Heads heads;
  const ModelConfig::PerBlock& b = c.Block(block);
  const int64_t keys = b.head_count_kv * b.key_length;
  const int64_t values = b.head_count_kv * b.value_length;
  heads.q = m.Linear(blk + "attn_q", x, b.head_count * b.key_length, d, bias);
  heads.k = m.Linear(blk + "attn_k", x, keys, d, bias);
  heads.v = m.Linear(blk + "attn_v", x, values, d, bias);
  return heads;
}

Heads HeadsByOne(ModelBuilder& m, int64_t block, ValueId x, Bias bias) {
  const ModelConfig& c = m.config;
  const std::string blk = BlockPrefix(block);
  const ModelConfig::PerBlock& b = c.Block(block);
  const int64_t q = b.head_count * b.key_length;
  const int64_t k = b.head_count_kv * b.key_length;
  const int64_t v = b.head_count_kv * b.value_length;
  const ValueId all =
      m.Linear(blk + "attn_qkv", x, q + k + v, c.embedding_length, bias);
  Heads heads;
  m.Name(blk + "attn_q");
  heads.q = m.Slice(all, 0, q);
  m.Name(blk + "attn_k");
  heads.k = m.Slice(all, q, k);
  m.Name(blk + "attn_v");
  heads.v = m.Slice(all, q + k, v);
  return heads;
}

}  // namespace

std::string BlockPrefix(int64_t block) {
  return absl::StrCat("blk.", block, ".");
}

ValueId RmsNorm(ModelBuilder& m, const std::string& name, ValueId x) {
  return RmsNorm(m, name, x, m.config.embedding_length);
}

ValueId RmsNorm(ModelBuilder& m, const std::string& name, ValueId x,
                int64_t columns) {
  const ValueId weight = m.Vector(name + ".weight", {columns});
  m.Name(name);
  return m.RmsNorm(x, weight, AsWritten(m.config.norm_epsilon));
}

ValueId LayerNorm(ModelBuilder& m, const std::string& name, ValueId x,
                  Bias bias) {
  const int64_t d = m.config.embedding_length;
  const ValueId weight = m.Vector(name + ".weight", {d});
  const ValueId added = bias == Bias::kRequired
                            ? m.Vector(name + ".bias", {d})
                            : m.OptionalVector(name + ".bias", {d});
  m.Name(name);
  return m.LayerNorm(x, weight, added, AsWritten(m.config.norm_epsilon));
}

Heads SeparateHeads(ModelBuilder& m, int64_t block, ValueId x, Bias bias) {
  return m.HasTensor(BlockPrefix(block) + "attn_qkv.weight")
             ? HeadsByOne(m, block, x, bias)
             : HeadsByThree(m, block, x, bias);
}

Heads JoinedHeads(ModelBuilder& m, int64_t block, ValueId x, Bias bias) {
  return m.HasTensor(BlockPrefix(block) + "attn_q.weight")
             ? HeadsByThree(m, block, x, bias)
             : HeadsByOne(m, block, x, bias);
}

Heads NormHeads(ModelBuilder& m, int64_t block, Heads heads) {
  const ModelConfig::PerBlock& b = m.config.Block(block);
  heads.q = NormByHead(m, BlockPrefix(block) + "attn_q_norm", heads.q,
                       b.head_count, b.key_length);
  heads.k = NormByHead(m, BlockPrefix(block) + "attn_k_norm", heads.k,
                       b.head_count_kv, b.key_length);
  return heads;
}

ValueId NormByHead(ModelBuilder& m, const std::string& name, ValueId x,
                   int64_t heads, int64_t length) {
  const ValueId weight = m.Vector(name + ".weight", {length});
  m.Name(name);
  return m.RmsNorm(x, weight, AsWritten(m.config.norm_epsilon), heads);
}

Heads NormRows(ModelBuilder& m, int64_t block, Heads heads) {
  const ModelConfig& c = m.config;
  const auto norm = [&](const char* name, ValueId x, int64_t count) {
    const std::string full = BlockPrefix(block) + name;
    const ValueId weight = m.Vector(full + ".weight", {count * c.key_length});
    m.Name(full);
    return m.RmsNorm(x, weight, AsWritten(c.norm_epsilon));
  };
  heads.q = norm("attn_q_norm", heads.q, c.Block(block).head_count);
  heads.k = norm("attn_k_norm", heads.k, c.Block(block).head_count_kv);
  return heads;
}

ValueId LongRopeFactors(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  constexpr char kLong[] = "rope_factors_long.weight";
  constexpr char kShort[] = "rope_factors_short.weight";
  ValueId for_long = m.OptionalRopeFactors(kLong);
  ValueId for_short = m.OptionalRopeFactors(kShort);
  // Files need not name this kind of stretching. Both or none: without its own,
  // a context would get another model's result.
  const bool unnamed = !c.says_rope_scaling && c.original_context_length > 0 &&
                       c.original_context_length < c.trained_context_length;
  if (c.longrope || unnamed || for_long != kNone || for_short != kNone) {
    for_long = m.RopeFactors(kLong);
    for_short = m.RopeFactors(kShort);
  }
  const bool stretched = c.original_context_length > 0 &&
                         m.graph().bounds.context > c.original_context_length;
  return stretched ? for_long : for_short;
}

Heads RotateHeads(ModelBuilder& m, int64_t block, Heads heads,
                  const RopeOptions& rope) {
  m.Name(BlockPrefix(block) + "rope_q");
  heads.q = m.Rope(heads.q, m.positions, rope);
  m.Name(BlockPrefix(block) + "rope_k");
  heads.k = m.Rope(heads.k, m.positions, rope);
  return heads;
}

AttentionOptions DefaultAttention(const ModelConfig& config) {
  AttentionOptions options;
  options.scale = 1.0 / std::sqrt(static_cast<double>(config.key_length));
  return options;
}

Cache WriteCache(ModelBuilder& m, int64_t block, const Heads& heads) {
  const ModelConfig::PerBlock& b = m.config.Block(block);
  const std::string blk = BlockPrefix(block);
  const ValueId key_state = m.KeyState(block, b.head_count_kv, b.key_length);
  const ValueId value_state =
      m.ValueState(block, b.head_count_kv, b.value_length);
  Cache cache;
  m.Name(blk + "keys");
  cache.keys = m.KvWrite(key_state, heads.k, m.positions, m.sequence);
  m.Name(blk + "values");
  cache.values = m.KvWrite(value_state, heads.v, m.positions, m.sequence);
  m.graph().AddOutput(blk + "keys", cache.keys);
  m.graph().AddOutput(blk + "values", cache.values);
  return cache;
}

ValueId AttendHeads(ModelBuilder& m, int64_t block, ValueId q,
                    const Cache& cache, const AttentionOptions& chosen,
                    ValueId sinks) {
  const ModelConfig& c = m.config;
  const ModelConfig::PerBlock& b = c.Block(block);
  AttentionOptions options = chosen;
  options.heads = b.head_count;
  const std::string blk = BlockPrefix(block);
  const ValueId last = c.encoder ? m.last_positions : m.positions;
  m.Name(blk + "attention");
  // What depends on distances asks where a row of an encoder stands.
  const bool by_distance = options.window > 0 || options.alibi > 0;
  const ValueId scores =
      m.AttentionScores(q, cache.keys, last, m.sequence, options,
                        c.encoder && by_distance ? m.positions : kNone);
  const ValueId weights = m.Softmax(scores, sinks);
  return m.AttentionValues(weights, cache.values, last, m.sequence);
}

ValueId Attend(ModelBuilder& m, int64_t block, ValueId q, const Cache& cache,
               const AttentionOptions& options, Bias bias, ValueId sinks) {
  const ModelConfig::PerBlock& b = m.config.Block(block);
  const ValueId mixed = AttendHeads(m, block, q, cache, options, sinks);
  return m.Linear(BlockPrefix(block) + "attn_output", mixed,
                  m.config.embedding_length, b.head_count * b.value_length,
                  bias);
}

ValueId CachedAttention(ModelBuilder& m, int64_t block, const Heads& heads,
                        const AttentionOptions& options, Bias bias) {
  return Attend(m, block, heads.q, WriteCache(m, block, heads), options, bias,
                heads.sinks);
}

ValueId Gated(ModelBuilder& m, ValueId gate, ValueId up,
              Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return m.Mul(m.Silu(gate), up);
    case Activation::kGeluTanh:
      return m.Mul(m.Gelu(gate, GeluApproximation::kTanh), up);
    case Activation::kClamped:
      break;
  }
  return m.Node(kClampedGateOp, {gate, up}, ClampedGateAttributes{7, 1.702});
}

ValueId GatedFeedForward(ModelBuilder& m, int64_t block, ValueId x,
                         Activation activation) {
  const std::string blk = BlockPrefix(block);
  const int64_t d = m.config.embedding_length;
  const int64_t f = m.config.Block(block).feed_forward_length;
  const ValueId gate = m.Linear(blk + "ffn_gate", x, f, d);
  const ValueId up = m.Linear(blk + "ffn_up", x, f, d);
  m.Name(blk + "ffn_act");
  return m.Linear(blk + "ffn_down", Gated(m, gate, up, activation), d, f);
}

ValueId JoinedFeedForward(ModelBuilder& m, int64_t block, ValueId x) {
  const std::string blk = BlockPrefix(block);
  const int64_t d = m.config.embedding_length;
  const int64_t f = m.config.Block(block).feed_forward_length;
  const ValueId both = m.Linear(blk + "ffn_up", x, 2 * f, d);
  m.Name(blk + "ffn_act");
  const ValueId gate = m.Silu(m.Slice(both, 0, f));
  const ValueId hidden = m.Mul(gate, m.Slice(both, f, f));
  return m.Linear(blk + "ffn_down", hidden, d, f);
}

ValueId EmbedTokens(ModelBuilder& m) {
  const ValueId table = m.Matrix("token_embd", m.config.vocabulary_size,
                                 m.config.embedding_length);
  m.Name("token_embd");
  return m.Embed(m.ids, table);
}

ValueId Residual(ModelBuilder& m, const std::string& name, ValueId y,
                 ValueId x) {
  m.Name(name);
  return m.Add(y, x);
}

ValueId OutputRows(ModelBuilder& m, ValueId x) {
  m.Name("output_rows");
  return m.TakeRows(x, m.output_rows);
}

ValueId NormedOutputRows(ModelBuilder& m, const std::string& norm, ValueId x) {
  if (!m.gives_hidden_rows) return RmsNorm(m, norm, OutputRows(m, x));
  x = RmsNorm(m, norm, x);
  m.graph().AddOutput(kHiddenRows, x);
  return OutputRows(m, x);
}

ValueId Logits(ModelBuilder& m, ValueId x, Tied tied) {
  const ModelConfig& c = m.config;
  m.hidden = x;
  const int64_t rows = c.vocabulary_size, columns = c.embedding_length;
  ValueId output = tied == Tied::kNever
                       ? m.Matrix("output", rows, columns)
                       : m.OptionalMatrix("output", rows, columns);
  if (output == kNone) output = m.Matrix("token_embd", rows, columns);
  m.Name("output");
  return m.Matmul(x, output);
}

}  // namespace weft
