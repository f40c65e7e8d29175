#include "loaders/architectures/latent_attention.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

constexpr char kQueryRank[] = "attention.q_lora_rank";
constexpr char kRank[] = "attention.kv_lora_rank";
// Of heads, where key_length and value_length are those of the latent.
constexpr char kKeyLength[] = "attention.key_length_mla";
constexpr char kValueLength[] = "attention.value_length_mla";

// x times rows begin .. begin + size - 1 of each of the heads of a weight.
ValueId Part(ModelBuilder& m, const std::string& name, ValueId x,
             ValueId weight, int64_t heads, int64_t begin, int64_t size) {
  m.Name(name);
  return m.Matmul(x, m.SliceRows(weight, heads, begin, size));
}

ValueId Rotate(ModelBuilder& m, const std::string& name, ValueId x,
               const RopeOptions& rope) {
  if (rope.rope_dims == 0) return x;
  m.Name(name);
  return m.Rope(x, m.positions, rope);
}

// The matrices of the heads: [heads * rank, key_length] and
// [heads * value_length, rank].
struct HeadMatrices {
  ValueId k, v;
};

HeadMatrices ReadHeads(ModelBuilder& m, const std::string& blk, int64_t heads,
                       const LatentAttentionOptions& o) {
  const std::string k = blk + "attn_k_b", v = blk + "attn_v_b";
  const std::string both = blk + "attn_kv_b";
  const int64_t rows = o.key_length + o.value_length;
  HeadMatrices apart = {m.OptionalHeadMatrix(k, heads, o.rank, o.key_length),
                        kNone};
  if (apart.k != kNone) {
    m.OptionalMatrix(both, heads * rows, o.rank);  // the same once more
    apart.v = m.HeadMatrix(v, heads, o.value_length, o.rank);
    return apart;
  }
  const ValueId weight = m.Matrix(both, heads * rows, o.rank);
  HeadMatrices parts;
  m.Name(k);
  parts.k = m.TransposeRows(weight, heads, 0, o.key_length);
  m.Name(v);
  parts.v = m.SliceRows(weight, heads, o.key_length, o.value_length);
  return parts;
}

}  // namespace

std::vector<ModelKey> LatentKeys() {
  constexpr double kMost = 1 << 24;
  return {{kQueryRank, 0, kMost, 0},
          {kRank, 1, kMost, 0, true},
          {kKeyLength, 0, kMost, 0},
          {kValueLength, 0, kMost, 0}};
}

LatentAttentionOptions LatentAttentionOf(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const auto either = [&c](const char* of_heads, int64_t otherwise) {
    const int64_t length = static_cast<int64_t>(c.Number(of_heads));
    return length > 0 ? length : otherwise;
  };
  const int64_t query = either(kKeyLength, c.key_length);
  LatentAttentionOptions options;
  options.query_rank = static_cast<int64_t>(c.Number(kQueryRank));
  options.rank = static_cast<int64_t>(c.Number(kRank));
  options.rotated_length = c.rope_dimension_count;
  options.key_length = query - c.rope_dimension_count;
  options.value_length = either(kValueLength, c.value_length);
  options.scale = c.rope_score_factor / std::sqrt(static_cast<double>(query));
  options.rope = m.RopeOf(RopeStyle::kInterleaved);
  options.rope.head_dim = c.rope_dimension_count;
  if (options.key_length < 1) {
    m.RefuseKey("rope.dimension_count", c.rope_dimension_count,
                absl::StrCat("less than the length of keys, ", query));
  }
  return options;
}

ValueId LatentAttention(ModelBuilder& m, int64_t block, ValueId x,
                        const LatentAttentionOptions& o) {
  const int64_t d = m.config.embedding_length;
  const int64_t heads = m.config.Block(block).head_count;
  const std::string blk = BlockPrefix(block);

  const int64_t query = o.key_length + o.rotated_length;
  ValueId from = x;
  std::string q_name = blk + "attn_q";
  if (o.query_rank > 0) {
    from =
        RmsNorm(m, blk + "attn_q_a_norm",
                m.Linear(blk + "attn_q_a", x, o.query_rank, d), o.query_rank);
    q_name = blk + "attn_q_b";
  }
  const ValueId q_weight =
      m.Matrix(q_name, heads * query, o.query_rank > 0 ? o.query_rank : d);
  const ValueId q = Part(m, q_name, from, q_weight, heads, 0, o.key_length);
  const ValueId q_shared = Part(m, blk + "attn_q_shared", from, q_weight, heads,
                                o.key_length, o.rotated_length);

  const ValueId a =
      m.Matrix(blk + "attn_kv_a_mqa", o.rank + o.rotated_length, d);
  const ValueId latent =
      RmsNorm(m, blk + "attn_kv_a_norm",
              Part(m, blk + "attn_kv_a_mqa", x, a, 1, 0, o.rank), o.rank);
  const ValueId k_shared =
      Part(m, blk + "attn_k_shared", x, a, 1, o.rank, o.rotated_length);

  const HeadMatrices matrices = ReadHeads(m, blk, heads, o);
  m.Name(blk + "attn_k_b");
  const ValueId absorbed = m.HeadMatmul(q, matrices.k, heads);
  const ValueId q_turned = Rotate(m, blk + "rope_q", q_shared, o.rope);
  m.Name(blk + "attn_queries");
  const ValueId queries = m.ConcatHeads(absorbed, q_turned, heads);
  const ValueId k_turned = Rotate(m, blk + "rope_k", k_shared, o.rope);
  m.Name(blk + "attn_latent");
  const ValueId row = m.ConcatHeads(latent, k_turned);

  const ValueId state = m.KeyState(block, 1, o.rank + o.rotated_length);
  m.Name(blk + "keys");
  const ValueId keys = m.KvWrite(state, row, m.positions, m.sequence);
  m.graph().AddOutput(blk + "keys", keys);
  AttentionOptions options;
  options.heads = heads;
  options.scale = o.scale;
  m.Name(blk + "attention");
  const ValueId scores =
      m.AttentionScores(queries, keys, m.positions, m.sequence, options);
  const ValueId mixed = m.AttentionValues(m.Softmax(scores), keys, m.positions,
                                          m.sequence, o.rank);
  m.Name(blk + "attn_v_b");
  const ValueId values = m.HeadMatmul(mixed, matrices.v, heads);
  return m.Linear(blk + "attn_output", values, d, heads * o.value_length);
}

}  // namespace weft
