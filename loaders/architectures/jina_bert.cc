// Jina's encoders.
//
// jina-bert-v2 (Guenther et al. 2023, arXiv:2310.19923): BERT without
// positions; scores become less with the distance, in both directions (ALiBi:
// Press et al. 2021, arXiv:2108.12409), and the network is gated, with GELU.
// The model for code also normalises queries and keys, over all heads together,
// and the sum of the attention's result and the block's input once more.
//
// Files have the gate apart, or above or below ffn_up in one tensor: the model
// for code was published with the gate below, and files of it are so, though
// the engine that converts them reads the gate above.
//
// jina-bert-v3 (Sturua et al. 2024, arXiv:2409.10173), without its adapters:
// XLM-RoBERTa with rotation in place of positions.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/encoder.h"

namespace weft {
namespace {

constexpr double kAlibi = 8;

ValueId GatedGelu(ModelBuilder& m, int64_t block, ValueId x) {
  const std::string blk = BlockPrefix(block);
  const int64_t d = m.config.embedding_length;
  const int64_t f = m.config.Block(block).feed_forward_length;
  if (m.HasTensor(blk + "ffn_gate.weight")) {
    return GatedFeedForward(m, block, x, Activation::kGeluTanh);
  }
  if (!m.HasTensor(blk + "ffn_up.weight", {d, 2 * f})) {
    return GeluFeedForward(m, block, x);
  }
  const ValueId both = m.Linear(blk + "ffn_up", x, 2 * f, d);
  const bool is_for_code = m.HasTensor(blk + "attn_q_norm.weight");
  m.Name(blk + "ffn_act");
  const ValueId first = m.Slice(both, 0, f), second = m.Slice(both, f, f);
  const ValueId hidden = is_for_code
                             ? Gated(m, second, first, Activation::kGeluTanh)
                             : Gated(m, first, second, Activation::kGeluTanh);
  return m.Linear(blk + "ffn_down", hidden, d, f);
}

void BuildV2(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  AttentionOptions attention = DefaultAttention(c);
  attention.alibi = kAlibi;
  ValueId x = EncoderInput(m, /*positions=*/false);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    Heads heads = SeparateHeads(m, block, x);
    if (m.HasTensor(blk + "attn_q_norm.weight")) {
      heads.q = LayerNorm(m, blk + "attn_q_norm", heads.q);
      heads.k = LayerNorm(m, blk + "attn_k_norm", heads.k);
    }
    const ValueId attended = CachedAttention(m, block, heads, attention);
    ValueId y = LayerNorm(m, blk + "attn_output_norm",
                          Residual(m, blk + "attn_residual", attended, x));
    if (m.HasTensor(blk + "attn_norm_2.weight")) {
      y = LayerNorm(m, blk + "attn_norm_2",
                    Residual(m, blk + "attn_residual_2", y, x));
    }
    const ValueId fed = GatedGelu(m, block, y);
    x = LayerNorm(m, blk + "layer_output_norm",
                  Residual(m, blk + "ffn_residual", fed, y));
  }
  GiveVectors(m, x);
}

void BuildV3(ModelBuilder& m) { BuildRotatedBert(m, GeluFeedForward); }

ModelTraits TraitsV3() {
  ModelTraits traits = EncoderTraits();
  traits.rope = true;
  traits.default_freq_base = 20000;
  return traits;
}

}  // namespace

const Architecture kJinaBertV2 = {"jina-bert-v2", EncoderTraits(), BuildV2};
const Architecture kJinaBertV3 = {"jina-bert-v3", TraitsV3(), BuildV3};

}  // namespace weft
