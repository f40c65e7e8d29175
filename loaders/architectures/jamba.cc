// Jamba (AI21 2024, arXiv:2403.19887): Mamba mixers, attention without
// positions in a few blocks, experts in every other one.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"
#include "loaders/architectures/recurrent.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  ExpertOptions options = ExpertsOf(c);
  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const ValueId normed = RmsNorm(m, blk + "attn_norm", x);
    const ValueId mixed =
        c.Block(block).head_count_kv == 0
            ? MambaMixer(m, block, normed)
            : CachedAttention(m, block, SeparateHeads(m, block, normed),
                              DefaultAttention(c));
    x = Residual(m, blk + "attn_residual", mixed, x);
    const ValueId input = RmsNorm(m, blk + "ffn_norm", x);
    const ValueId fed =
        m.HasTensor(blk + "ffn_gate_inp.weight")
            ? Experts(m, blk, input, options)
            : GatedFeedForward(m, block, input, Activation::kSilu);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.rope = false;
  traits.blocks_without_attention = true;
  traits.keys = MambaKeys();
  traits.handled_keys = {"expert_count"};
  return traits;
}

}  // namespace

const Architecture kJamba = {"jamba", Traits(), Build};

}  // namespace weft
