// Qwen3.5 (Qwen 2026): a gated delta net, with gated attention in every fourth
// block. The heads of values that have one head of keys stand apart in files:
// head h has the keys h modulo their number.
#include "loaders/architectures/qwen35.h"

#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/recurrent.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  BuildQwen35(m, [&m](int64_t block, ValueId x) {
    return GatedFeedForward(m, block, x, Activation::kSilu);
  });
}

}  // namespace

void BuildQwen35(ModelBuilder& m,
                 const std::function<ValueId(int64_t, ValueId)>& feed_forward) {
  DeltaNetFamily family;
  family.key_heads = HeadOrder::kTiled;
  family.feed_forward = feed_forward;
  family.inputs = [&m](int64_t block, ValueId x) {
    const std::string blk = BlockPrefix(block);
    const SsmSizes s = SsmSizesOf(m);
    const int64_t d = m.config.embedding_length;
    DeltaNetInputs in;
    in.qkv = m.Linear(blk + "attn_qkv", x, 2 * s.groups * s.state + s.inner, d);
    in.gate = m.Linear(blk + "attn_gate", x, s.inner, d);
    in.beta = m.Linear(blk + "ssm_beta", x, s.heads, d);
    in.alpha = m.Linear(blk + "ssm_alpha", x, s.heads, d);
    return in;
  };
  BuildDeltaNetModel(m, family);
}

ModelTraits Qwen35Traits() {
  ModelTraits traits = DeltaNetTraits();
  traits.handled_keys.push_back("rope.dimension_sections");
  return traits;
}

const Architecture kQwen35 = {"qwen35", Qwen35Traits(), Build};

}  // namespace weft
