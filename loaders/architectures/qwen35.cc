// Qwen3.5 (Qwen 2026): a gated delta net, with gated attention in every fourth
// block. The heads of values that have one head of keys stand apart in files:
// head h has the keys h modulo their number.
#include "loaders/architectures/qwen35.h"

#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/recurrent.h"

namespace weft {
namespace {

ValueId FeedForward(ModelBuilder& m, int64_t block, ValueId x) {
  return GatedFeedForward(m, block, x, Activation::kSilu);
}

void Build(ModelBuilder& m) {
  BuildDeltaNetModel(m, Qwen35Family(m, FeedForward));
}

void BuildNextTokenBlock(ModelBuilder& m) {
  BuildDeltaNetNextTokenBlock(m, Qwen35Family(m, FeedForward));
}

}  // namespace

DeltaNetFamily Qwen35Family(ModelBuilder& m,
                            ValueId (*feed_forward)(ModelBuilder& m,
                                                    int64_t block, ValueId x)) {
  DeltaNetFamily family;
  family.key_heads = HeadOrder::kTiled;
  family.feed_forward = [&m, feed_forward](int64_t block, ValueId x) {
    return feed_forward(m, block, x);
  };
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
  return family;
}

ModelTraits Qwen35Traits() {
  ModelTraits traits = DeltaNetTraits();
  traits.handled_keys.push_back("rope.dimension_sections");
  return traits;
}

const Architecture kQwen35 = {"qwen35", Qwen35Traits(), Build,
                              BuildNextTokenBlock};

}  // namespace weft
