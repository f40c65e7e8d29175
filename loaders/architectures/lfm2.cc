// LFM2 (Liquid AI 2025, arXiv:2511.23404): most blocks are a short convolution
// between two gates, the others attention.
#include "loaders/architectures/lfm2.h"

#include "loaders/architectures/architectures.h"

namespace weft {
namespace {

constexpr char kTaps[] = "shortconv.l_cache";

// out(c * conv(b * x)).
ValueId GatedConv(ModelBuilder& m, int64_t block, ValueId x) {
  const std::string name = BlockPrefix(block) + "shortconv.";
  const int64_t d = m.config.embedding_length;
  const int64_t window = static_cast<int64_t>(m.config.Number(kTaps)) - 1;
  const ValueId all = m.Linear(name + "in_proj", x, 3 * d, d);
  const ValueId taps = m.Transposed(name + "conv.weight", {window + 1, d});
  if (!m.ok()) return kNone;
  m.Name(name + "b");
  const ValueId b = m.Slice(all, 0, d);
  m.Name(name + "c");
  const ValueId c = m.Slice(all, d, d);
  m.Name(name + "x");
  const ValueId in = m.Mul(b, m.Slice(all, 2 * d, d));
  const ValueId state = m.WindowState(block, "window", window, d);
  m.Name(name + "conv");
  const ValueId y =
      m.KeepState(BlockPrefix(block) + "window",
                  m.ShortConv(state, in, taps, kNone, m.rows_of()));
  m.Name(name + "gated");
  return m.Linear(name + "out_proj", m.Mul(c, y), d, d);
}

void Build(ModelBuilder& m) {
  BuildLfm2(m, [&m](int64_t block, ValueId x) {
    return GatedFeedForward(m, block, x, Activation::kSilu);
  });
}

}  // namespace

void BuildLfm2(ModelBuilder& m,
               const std::function<ValueId(int64_t, ValueId)>& feed_forward) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kHalves);
  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const ValueId normed = RmsNorm(m, blk + "attn_norm", x);
    ValueId mixed;
    if (c.Block(block).head_count_kv == 0) {
      mixed = GatedConv(m, block, normed);
    } else {
      const Heads heads = NormHeads(m, block, SeparateHeads(m, block, normed));
      mixed = CachedAttention(m, block, RotateHeads(m, block, heads, rope),
                              DefaultAttention(c));
    }
    x = Residual(m, blk + "attn_residual", mixed, x);
    const ValueId fed = feed_forward(block, RmsNorm(m, blk + "ffn_norm", x));
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  // Named after the embedding, but it is the last norm.
  x = RmsNorm(m, "token_embd_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

ModelTraits Lfm2Traits() {
  ModelTraits traits;
  traits.blocks_without_attention = true;
  traits.keys = {{kTaps, 2, 64, 0, true}};
  return traits;
}

const Architecture kLfm2 = {"lfm2", Lfm2Traits(), Build};

}  // namespace weft
