// Kimi Linear (Kimi Team 2025, arXiv:2510.26692): three blocks with a delta
// rule that forgets each key by itself ("Kimi Delta Attention"), then one with
// latent attention; experts as in DeepSeek-V3. Nothing turns by position: what
// is shared by the heads' keys is as wide as if it did.
#include <cmath>

#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"
#include "loaders/architectures/latent_attention.h"
#include "loaders/architectures/recurrent.h"

namespace weft {
namespace {

constexpr char kConvKernel[] = "ssm.conv_kernel";
constexpr char kHeadLength[] = "kda.head_dim";

// x through a narrow product and then a wide one.
ValueId LowRank(ModelBuilder& m, const std::string& narrow,
                const std::string& wide, ValueId x, int64_t rank,
                int64_t outputs) {
  return m.Linear(wide, m.Linear(narrow, x, rank, m.config.embedding_length),
                  outputs, rank);
}

ValueId KimiDelta(ModelBuilder& m, int64_t block, ValueId x) {
  const ModelConfig& c = m.config;
  const std::string blk = BlockPrefix(block);
  const int64_t d = c.embedding_length;
  const int64_t heads = c.Block(block).head_count;
  const int64_t length = static_cast<int64_t>(c.Number(kHeadLength));
  const int64_t window = static_cast<int64_t>(c.Number(kConvKernel)) - 1;
  const int64_t width = heads * length;
  const double epsilon = AsWritten(c.norm_epsilon);
  const ValueId step_bias = m.Vector(blk + "ssm_dt.bias", {width});
  const ValueId a = m.Repeated(blk + "ssm_a", {1, heads}, length);
  const ValueId norm = m.Vector(blk + "ssm_norm.weight", {length});
  const auto convolved = [&](const std::string& of) {
    return ConvolvedSilu(m, block, blk + "ssm_conv1d_" + of, "window_" + of,
                         m.Linear(blk + "attn_" + of, x, width, d), width,
                         window, /*planes=*/true);
  };
  const ValueId conv_q = convolved("q");
  const ValueId conv_k = convolved("k");
  const ValueId v = convolved("v");
  const ValueId steps =
      LowRank(m, blk + "ssm_f_a", blk + "ssm_f_b", x, length, width);
  const ValueId beta_logits = m.Linear(blk + "ssm_beta", x, heads, d);
  const ValueId gate =
      LowRank(m, blk + "ssm_g_a", blk + "ssm_g_b", x, length, width);
  if (!m.ok()) return kNone;
  m.Name(blk + "ssm_q");
  const ValueId q = m.L2Norm(conv_q, epsilon, heads);
  m.Name(blk + "ssm_k");
  const ValueId k = m.L2Norm(conv_k, epsilon, heads);
  m.Name(blk + "ssm_decay");
  const ValueId decay = m.Mul(m.Softplus(m.Add(steps, step_bias)), a);
  m.Name(blk + "ssm_beta");
  const ValueId beta = m.Sigmoid(beta_logits);
  const ValueId state = m.MatrixState(block, heads, length, length);
  const double scale = 1.0 / std::sqrt(static_cast<double>(length));
  m.Name(blk + "ssm_delta");
  const ValueId y = m.KeepState(
      blk + "matrices", m.DeltaRule(state, q, k, v, decay, beta, m.rows_of(),
                                    {scale, HeadOrder::kGrouped}));
  m.Name(blk + "ssm_norm");
  const ValueId normed = m.RmsNorm(y, norm, epsilon, heads);
  m.Name(blk + "ssm_gated");
  return m.Linear(blk + "attn_output", m.Mul(m.Sigmoid(gate), normed), d,
                  width);
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  LatentAttentionOptions attention = LatentAttentionOf(m);
  attention.rope.rope_dims = 0;
  ExpertOptions experts = ExpertsOf(c);
  experts.choice_bias = Bias::kRequired;

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const ValueId normed = RmsNorm(m, blk + "attn_norm", x);
    const ValueId mixed = c.Block(block).head_count_kv == 0
                              ? KimiDelta(m, block, normed)
                              : LatentAttention(m, block, normed, attention);
    x = Residual(m, blk + "attn_residual", mixed, x);
    const ValueId fed = FeedForwardOrExperts(
        m, block, RmsNorm(m, blk + "ffn_norm", x), experts);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x, Tied::kNever));
}

ModelTraits Traits() {
  ModelTraits traits = ExpertTraits(Gating::kSigmoid, /*normalize=*/true);
  traits.blocks_without_attention = true;
  traits.keys = LatentKeys();
  traits.keys.push_back({kConvKernel, 2, 64, 0, true});
  traits.keys.push_back({kHeadLength, 1, 512, 0, true});
  return traits;
}

}  // namespace

const Architecture kKimiLinear = {"kimi-linear", Traits(), Build};

}  // namespace weft
