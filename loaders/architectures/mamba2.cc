// Mamba 2 (Dao and Gu 2024, arXiv:2405.21060): nothing but recurrent blocks.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/recurrent.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < m.config.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const ValueId mixed =
        Mamba2Mixer(m, block, RmsNorm(m, blk + "attn_norm", x));
    x = Residual(m, blk + "ssm_residual", mixed, x);
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

}  // namespace

const Architecture kMamba2 = {"mamba2", Traits(), Build};

}  // namespace weft
