// StableLM (Bellagente et al. 2024, arXiv:2402.17834): LLaMA with LayerNorm and
// rotation of a part of each head.
//
// Larger models have the parallel residual, where attention and feed-forward
// network read the same norm and are added at once, and normalise each head of
// queries and keys, with weights of its own. Whether there is a norm for the
// network alone tells the two apart: published files of sequential models say
// `use_parallel_residual` too.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

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
  const RopeOptions rope = m.RopeOf(RopeStyle::kHalves);

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const ValueId normed = LayerNorm(m, blk + "attn_norm", x);
    Heads heads = SeparateHeads(m, block, normed);
    heads.q = NormEachHead(m, blk + "attn_q_norm", heads.q,
                           c.Block(block).head_count);
    heads.k = NormEachHead(m, blk + "attn_k_norm", heads.k,
                           c.Block(block).head_count_kv);
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), DefaultAttention(c));
    x = Residual(m, blk + "attn_residual", attended, x);
    const bool sequential = m.OptionalVector(blk + "ffn_norm.weight",
                                             {c.embedding_length}) != kNone;
    const ValueId fed = GatedFeedForward(
        m, block, sequential ? LayerNorm(m, blk + "ffn_norm", x) : normed,
        Activation::kSilu);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = LayerNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x, Tied::kNever));
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.norm = ModelTraits::Norm::kLayer;
  traits.rotates_part = true;
  return traits;
}

}  // namespace

const Architecture kStableLm = {"stablelm", Traits(), Build};

}  // namespace weft
