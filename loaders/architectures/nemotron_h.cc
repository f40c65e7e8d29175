// Nemotron-H, Nemotron Nano 2 (NVIDIA 2025, arXiv:2504.03624) and Nemotron 3:
// each block is one part alone, a Mamba 2 mixer, attention without positions,
// or a network of relu(up)^2, which may be a mixture of experts. The experts
// may work on fewer columns than the model has.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"
#include "loaders/architectures/recurrent.h"

namespace weft {
namespace {

constexpr char kLatentSize[] = "moe_latent_size";

ValueId SquaredRelu(ModelBuilder& m, const std::string& name, ValueId x) {
  m.Name(name);
  const ValueId positive = m.Relu(x);
  return m.Mul(positive, positive);
}

// ffn_down(relu(ffn_up x)^2), tensors with `suffix`.
ValueId FeedForward(ModelBuilder& m, const std::string& blk,
                    const std::string& suffix, ValueId x, int64_t width) {
  const int64_t d = m.config.embedding_length;
  const ValueId up = m.Linear(blk + "ffn_up" + suffix, x, width, d);
  return m.Linear(blk + "ffn_down" + suffix,
                  SquaredRelu(m, blk + "ffn_act" + suffix, up), d, width);
}

// The router and the shared network see x, the experts what is made of it.
ValueId Mixture(ModelBuilder& m, const std::string& blk, ValueId x) {
  const ModelConfig& c = m.config;
  const int64_t d = c.embedding_length, f = c.expert_feed_forward_length;
  const int64_t latent = static_cast<int64_t>(c.Number(kLatentSize));
  const int64_t columns = latent > 0 ? latent : d;
  ExpertOptions options = ExpertsOf(c);
  options.choice_bias = Bias::kRequired;
  const Chosen chosen = RouteToExperts(m, blk, x, options);
  const ValueId in =
      latent > 0 ? m.Linear(blk + "ffn_latent_down", x, latent, d) : x;
  const ValueId up = ExpertLinear(m, blk + "ffn_up_exps", in, chosen.ids, f,
                                  columns, Bias::kOptional);
  const ValueId hidden = SquaredRelu(m, blk + "ffn_act_exps", up);
  const ValueId down = ExpertLinear(m, blk + "ffn_down_exps", hidden,
                                    chosen.ids, columns, f, Bias::kOptional);
  m.Name(blk + "ffn_experts");
  ValueId y = m.WeightedSum(down, chosen.weights);
  if (latent > 0) y = m.Linear(blk + "ffn_latent_up", y, d, latent);
  if (options.shared_width == 0) return y;
  const ValueId shared = FeedForward(m, blk, "_shexp", x, options.shared_width);
  m.Name(blk + "ffn_all_experts");
  return m.Add(y, shared);
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const ModelConfig::PerBlock& b = c.Block(block);
    // Whatever the part is.
    const ValueId normed = RmsNorm(m, blk + "attn_norm", x);
    ValueId y;
    if (b.feed_forward_length > 0) {
      y = c.expert_count > 0
              ? Mixture(m, blk, normed)
              : FeedForward(m, blk, "", normed, b.feed_forward_length);
    } else if (b.head_count_kv > 0) {
      y = CachedAttention(m, block, SeparateHeads(m, block, normed),
                          DefaultAttention(c));
    } else {
      y = Mamba2Mixer(m, block, normed);
    }
    x = Residual(m, blk + "residual", y, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.rope = false;
  traits.blocks_without_attention = true;
  traits.blocks_without_feed_forward = true;
  traits.keys = SsmKeys();
  return traits;
}

ModelTraits MixtureTraits() {
  ModelTraits traits = Traits();
  traits.keys.push_back({kLatentSize, 0, 1 << 24, 0});
  HandleExperts(&traits, Gating::kSigmoid, /*normalize=*/true);
  return traits;
}

}  // namespace

const Architecture kNemotronH = {"nemotron_h", Traits(), Build};
const Architecture kNemotronHMoe = {"nemotron_h_moe", MixtureTraits(), Build};

}  // namespace weft
