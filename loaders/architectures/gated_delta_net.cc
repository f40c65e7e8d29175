#include "loaders/architectures/gated_delta_net.h"

#include <cmath>

#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"
#include "loaders/architectures/next_token_block.h"
#include "loaders/architectures/recurrent.h"

namespace weft {
namespace {

constexpr char kInterval[] = "full_attention_interval";

bool IsRecurrent(const ModelConfig& c, int64_t block) {
  if (!c.recurrent_blocks.empty()) return c.recurrent_blocks[block];
  return (block + 1) % static_cast<int64_t>(c.Number(kInterval)) != 0;
}

ValueId DeltaNet(ModelBuilder& m, int64_t block, ValueId x,
                 const DeltaNetFamily& family) {
  const SsmSizes s = SsmSizesOf(m);
  const std::string blk = BlockPrefix(block);
  const double epsilon = AsWritten(m.config.norm_epsilon);
  const int64_t keys = s.groups * s.state;
  const int64_t values = s.inner / s.heads;
  const DeltaNetInputs in = family.inputs(block, x);
  const ValueId step_bias = m.Vector(blk + "ssm_dt.bias", {s.heads});
  const ValueId a = m.Vector(blk + "ssm_a", {s.heads});
  const ValueId norm = m.Vector(blk + "ssm_norm.weight", {values});
  if (!m.ok()) return kNone;

  const ValueId conv = ConvolvedSilu(m, block, blk + "ssm_conv1d", "window",
                                     in.qkv, 2 * keys + s.inner, s.window);
  if (!m.ok()) return kNone;
  m.Name(blk + "ssm_q");
  const ValueId q = m.L2Norm(m.Slice(conv, 0, keys), epsilon, s.groups);
  m.Name(blk + "ssm_k");
  const ValueId k = m.L2Norm(m.Slice(conv, keys, keys), epsilon, s.groups);
  m.Name(blk + "ssm_v");
  const ValueId v = m.Slice(conv, 2 * keys, s.inner);
  m.Name(blk + "ssm_decay");
  const ValueId decay = m.Mul(m.Softplus(m.Add(in.alpha, step_bias)), a);
  m.Name(blk + "ssm_beta");
  const ValueId beta = m.Sigmoid(in.beta);
  const ValueId state = m.MatrixState(block, s.heads, s.state, values);
  const double scale = 1.0 / std::sqrt(static_cast<double>(s.state));
  m.Name(blk + "ssm_delta");
  const ValueId y = m.KeepState(
      blk + "matrices", m.DeltaRule(state, q, k, v, decay, beta, m.rows_of(),
                                    {scale, family.key_heads}));
  m.Name(blk + "ssm_norm");
  const ValueId normed = m.RmsNorm(y, norm, epsilon, s.heads);
  m.Name(blk + "ssm_gated");
  return m.Linear(blk + "ssm_out", m.Mul(m.Silu(in.gate), normed),
                  m.config.embedding_length, s.inner);
}

// Queries and gates stand head by head in turns in attn_q.
ValueId GatedAttention(ModelBuilder& m, int64_t block, ValueId x) {
  const ModelConfig& c = m.config;
  const std::string blk = BlockPrefix(block);
  const int64_t d = c.embedding_length, size = c.key_length;
  const int64_t count = c.Block(block).head_count;
  const int64_t count_kv = c.Block(block).head_count_kv;
  const ValueId weight = m.Matrix(blk + "attn_q", 2 * count * size, d);
  Heads heads;
  heads.k = m.Linear(blk + "attn_k", x, count_kv * size, d);
  heads.v = m.Linear(blk + "attn_v", x, count_kv * c.value_length, d);
  if (!m.ok()) return kNone;
  m.Name(blk + "attn_q");
  heads.q = m.Matmul(x, m.SliceRows(weight, count, 0, size));
  m.Name(blk + "attn_q_gate");
  const ValueId gate = m.Matmul(x, m.SliceRows(weight, count, size, size));
  heads = RotateHeads(m, block, NormHeads(m, block, heads),
                      m.RopeOf(RopeStyle::kHalves));
  const ValueId attended = AttendHeads(
      m, block, heads.q, WriteCache(m, block, heads), DefaultAttention(c));
  m.Name(blk + "attn_gated");
  return m.Linear(blk + "attn_output", m.Mul(m.Sigmoid(gate), attended), d,
                  count * c.value_length);
}

ValueId Block(ModelBuilder& m, int64_t block, bool recurrent, ValueId x,
              const DeltaNetFamily& family) {
  const std::string blk = BlockPrefix(block);
  const ValueId normed = RmsNorm(m, blk + "attn_norm", x);
  const ValueId mixed = recurrent ? DeltaNet(m, block, normed, family)
                                  : GatedAttention(m, block, normed);
  x = Residual(m, blk + "attn_residual", mixed, x);
  // It is the norm before the network, whatever its name.
  const ValueId fed =
      family.feed_forward(block, RmsNorm(m, blk + "post_attention_norm", x));
  return Residual(m, blk + "ffn_residual", fed, x);
}

}  // namespace

void BuildDeltaNetModel(ModelBuilder& m, const DeltaNetFamily& family) {
  const ModelConfig& c = m.config;
  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    x = Block(m, block, IsRecurrent(c, block), x, family);
  }
  x = NormedOutputRows(m, "output_norm", x);
  m.graph().AddOutput("logits", Logits(m, x));
}

void BuildDeltaNetNextTokenBlock(ModelBuilder& m,
                                 const DeltaNetFamily& family) {
  NextTokenBlock(m, HandsOn::kNormedRows, [&](int64_t block, ValueId x) {
    return Block(m, block, /*recurrent=*/false, x, family);
  });
}

ModelTraits DeltaNetTraits() {
  ModelTraits traits;
  traits.blocks_without_attention = true;  // attention.recurrent_layers
  traits.rotates_part = true;
  traits.keys = SsmKeys();
  traits.keys.push_back({kInterval, 1, 1 << 16, 4});
  traits.handled_keys.push_back(kNextTokenBlocks);
  return traits;
}

ValueId ExpertsAndGatedOne(ModelBuilder& m, int64_t block, ValueId x) {
  const ModelConfig& c = m.config;
  const std::string blk = BlockPrefix(block);
  const ExpertOptions options = ExpertsOf(c);
  const ValueId chosen = Experts(m, blk, x, options);
  const int64_t width =
      options.shared_width > 0 ? options.shared_width : c.feed_forward_length;
  const ValueId shared =
      SharedExperts(m, blk, x, width, Activation::kSilu, /*gated=*/true);
  m.Name(blk + "ffn_all_experts");
  return m.Add(chosen, shared);
}

ModelTraits WithExperts(ModelTraits traits) {
  HandleExperts(&traits, Gating::kSoftmax, /*normalize=*/true);
  traits.experts_share_length = true;
  return traits;
}

}  // namespace weft
