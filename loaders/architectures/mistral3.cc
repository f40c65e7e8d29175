// Ministral 3 (Mistral AI 2025), the text part: LLaMA stretched by YaRN, whose
// scores grow with the row's position.
//
// The scale of scores is that of Llama 4 (Meta AI 2025), 1 + s ln(1 + floor(p /
// n)), with the context before it was stretched as n; positions p count from 0.
// Files without the number s have no such scale. Mistral Small is a `llama`.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

constexpr char kTemperature[] = "attention.temperature_scale";

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kInterleaved);
  AttentionOptions attention = DefaultAttention(c);
  attention.temperature = c.Number(kTemperature);
  if (attention.temperature > 0) {
    attention.temperature_period = c.original_context_length > 0
                                       ? c.original_context_length
                                       : c.trained_context_length;
  }

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const Heads heads =
        SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x));
    const ValueId attended = CachedAttention(
        m, block, RotateHeads(m, block, heads, rope), attention);
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed = GatedFeedForward(
        m, block, RmsNorm(m, blk + "ffn_norm", x), Activation::kSilu);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.keys = {{kTemperature, 0, 1e6, 0}};
  return traits;
}

}  // namespace

const Architecture kMistral3 = {"mistral3", Traits(), Build};

}  // namespace weft
