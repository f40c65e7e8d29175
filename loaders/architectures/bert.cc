// BERT encoders (Devlin et al. 2018, arXiv:1810.04805), and RoBERTa,
// XLM-RoBERTa (Conneau et al. 2019, arXiv:1911.02116: bge-m3, multilingual-e5)
// and DistilBERT (which has no token types).
//
// Learned positions and token types (type 0 throughout: one text, no pair);
// post-norm blocks of attention in both directions and a network with GELU,
// biases everywhere. The published RoBERTas count positions from 2 on; files
// have the first two rows cut off.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/encoder.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  ValueId x = EncoderInput(m, /*positions=*/true);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const ValueId attended = CachedAttention(
        m, block, SeparateHeads(m, block, x), DefaultAttention(c));
    x = PostNormBlock(m, block, x, attended,
                      [&](ValueId y) { return GeluFeedForward(m, block, y); });
  }
  GiveVectors(m, x);
}

}  // namespace

const Architecture kBert = {"bert", EncoderTraits(), Build};

}  // namespace weft
