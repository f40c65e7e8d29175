// NeoBERT (Le Breton et al. 2025, arXiv:2502.19587): RMSNorm before each part,
// rotation of neighbours, a gated network with SiLU.
//
// Its product for queries, keys and values has them head by head, as published;
// files have that order, though the engine that converts them takes all queries
// to come first.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/encoder.h"

namespace weft {
namespace {

Heads HeadsByHead(ModelBuilder& m, int64_t block, ValueId x) {
  const ModelConfig& c = m.config;
  const std::string blk = BlockPrefix(block);
  const int64_t n = c.Block(block).head_count, length = c.key_length;
  const ValueId all =
      m.Matrix(blk + "attn_qkv", 3 * n * length, c.embedding_length);
  const auto part = [&](const char* name, int64_t which) {
    m.Name(blk + name);
    return m.Matmul(x, m.SliceRows(all, n, which * length, length));
  };
  Heads heads;
  heads.q = part("attn_q", 0);
  heads.k = part("attn_k", 1);
  heads.v = part("attn_v", 2);
  return heads;
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kInterleaved);
  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const Heads heads = HeadsByHead(m, block, RmsNorm(m, blk + "attn_norm", x));
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), DefaultAttention(c));
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed =
        JoinedFeedForward(m, block, RmsNorm(m, blk + "ffn_norm", x));
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  GiveVectors(m, RmsNorm(m, "enc.output_norm", x));
}

ModelTraits Traits() {
  ModelTraits traits = EncoderTraits();
  traits.norm = ModelTraits::Norm::kRms;
  traits.rope = true;
  return traits;
}

}  // namespace

const Architecture kNeoBert = {"neo-bert", Traits(), Build};

}  // namespace weft
