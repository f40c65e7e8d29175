// Mamba (Gu and Dao 2023, arXiv:2312.00752), where every value has a state, a
// step and a decay of its own, and Mamba 2 (Dao and Gu 2024, arXiv:2405.21060),
// where a head has: nothing but recurrent blocks.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/recurrent.h"

namespace weft {
namespace {

using Mixer = ValueId(ModelBuilder& m, int64_t block, ValueId x);

template <Mixer mixer>
void Build(ModelBuilder& m) {
  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < m.config.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const ValueId mixed = mixer(m, block, RmsNorm(m, blk + "attn_norm", x));
    x = Residual(m, blk + "ssm_residual", mixed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

ModelTraits TraitsWith(std::vector<ModelKey> keys) {
  ModelTraits traits;
  traits.rope = false;
  traits.blocks_without_attention = true;
  traits.blocks_without_feed_forward = true;
  traits.keys = std::move(keys);
  return traits;
}

}  // namespace

const Architecture kMamba = {"mamba", TraitsWith(MambaKeys()),
                             Build<MambaMixer>};
const Architecture kMamba2 = {"mamba2", TraitsWith(SsmKeys()),
                              Build<Mamba2Mixer>};

}  // namespace weft
