// StableLM (Bellagente et al. 2024, arXiv:2402.17834): LLaMA with LayerNorm and
// rotation of a part of each head.
//
// Larger models have the parallel residual, where attention and feed-forward
// network read the same norm and are added at once, and normalise each head of
// queries and keys, with weights of its own.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

constexpr char kParallel[] = "use_parallel_residual";

ValueId NormEachHead(ModelBuilder& m, const std::string& name, ValueId x,
                     int64_t heads) {
  const ValueId weight =
      m.OptionalVector(name + ".weight", {m.config.key_length, heads});
  if (weight == kNone) return x;
  m.Name(name);
  return m.LayerNorm(x, weight, kNone, AsWritten(m.config.norm_epsilon), heads);
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const bool parallel = c.Number(kParallel) != 0;
  const RopeOptions rope = m.RopeOf("halves");

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const ValueId normed = LayerNorm(m, blk + "attn_norm", x);
    Heads heads = SeparateHeads(m, block, normed);
    heads.q = NormEachHead(m, blk + "attn_q_norm", heads.q, c.head_count);
    heads.k = NormEachHead(m, blk + "attn_k_norm", heads.k, c.head_count_kv);
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), DefaultAttention(c));
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed = GatedFeedForward(
        m, block, parallel ? normed : LayerNorm(m, blk + "ffn_norm", x),
        Activation::kSilu);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = LayerNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.norm = ModelTraits::Norm::kLayer;
  traits.keys = {{kParallel, 0, 1, 0}};
  return traits;
}

}  // namespace

const Architecture kStableLm = {"stablelm", Traits(), Build};

}  // namespace weft
