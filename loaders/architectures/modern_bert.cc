// ModernBERT (Warner et al. 2024, arXiv:2412.13663): no biases, norms before
// each part but the first, rotation, a gated network, and in two blocks of
// three a window, half of it to each side, with another base of rotation. The
// first block of each three has none.
//
// The activation's GELU is the approximation by tanh (encoder.h); that of the
// head is GELU whatever the blocks have.
#include "absl/strings/str_cat.h"
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/encoder.h"

namespace weft {
namespace {

constexpr char kLocalBase[] = "rope.freq_base_swa";
constexpr int64_t kPublishedWindow = 128;
constexpr char kActivation[] = "hidden_activation";

Activation ActivationOf(ModelBuilder& m) {
  const std::string& name = m.config.hidden_activation;
  if (name == "silu") return Activation::kSilu;
  if (!name.empty() && name != "gelu") {
    m.Fail(absl::UnimplementedError(
        absl::StrCat("bad metadata: ", m.config.architecture, ".", kActivation,
                     ": it is not gelu or silu: use another model")));
  }
  return Activation::kGeluTanh;
}

// The first half of ffn_up is the gate.
ValueId FeedForward(ModelBuilder& m, int64_t block, ValueId x,
                    Activation activation) {
  const std::string blk = BlockPrefix(block);
  const int64_t d = m.config.embedding_length;
  const int64_t f = m.config.Block(block).feed_forward_length;
  const ValueId both = m.Linear(blk + "ffn_up", x, 2 * f, d);
  m.Name(blk + "ffn_act");
  const ValueId hidden =
      Gated(m, m.Slice(both, 0, f), m.Slice(both, f, f), activation);
  return m.Linear(blk + "ffn_down", hidden, d, f);
}

ValueId Norm(ModelBuilder& m, const std::string& name, ValueId x) {
  return LayerNorm(m, name, x, Bias::kOptional);
}

// cls.output LN(gelu(cls x)).
ValueId Head(ModelBuilder& m, ValueId pooled) {
  const int64_t d = m.config.embedding_length;
  ValueId x = pooled;
  if (m.HasTensor("cls.weight")) {
    x = m.Linear("cls", x, d, d);
    m.Name("cls.act");
    x = m.Gelu(x, GeluApproximation::kTanh);
  }
  if (m.HasTensor("cls.norm.weight")) x = Norm(m, "cls.norm", x);
  return m.Linear("cls.output", x, m.config.score_count, d);
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions global = m.RopeOf(RopeStyle::kHalves);
  RopeOptions local = m.UnscaledRopeOf(RopeStyle::kHalves);
  local.base = c.Number(kLocalBase);
  AttentionOptions attention = DefaultAttention(c);
  const Activation activation = ActivationOf(m);

  ValueId x = Norm(m, "token_embd_norm", EmbedTokens(m));
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    attention.window = c.WindowOf(block);
    const bool bare = block == 0 && !m.HasTensor(blk + "attn_norm.weight");
    const Heads heads =
        SeparateHeads(m, block, bare ? x : Norm(m, blk + "attn_norm", x));
    const ValueId attended = CachedAttention(
        m, block,
        RotateHeads(m, block, heads, c.Slides(block) ? local : global),
        attention);
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed =
        FeedForward(m, block, Norm(m, blk + "ffn_norm", x), activation);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  GiveVectors(m, Norm(m, "output_norm", x), Head);
}

ModelTraits Traits() {
  ModelTraits traits = EncoderTraits();
  traits.rope = true;
  traits.default_freq_base = 160000;
  traits.handled_keys.push_back("attention.sliding_window");
  traits.handled_keys.push_back(kActivation);
  traits.default_window = [](const ModelConfig&) { return kPublishedWindow; };
  traits.window_period = 3;
  traits.first_sees_all = true;
  traits.window_to_both_sides = true;
  traits.ranks_by = Pooling::kMean;
  traits.keys = {{kLocalBase, 1, 1e9, 10000}};
  return traits;
}

}  // namespace

const Architecture kModernBert = {"modern-bert", Traits(), Build};

}  // namespace weft
