// Gemma 3 (Gemma Team 2025, arXiv:2503.19786), its language model: Gemma 2 with
// norms of queries and keys instead of soft caps, five blocks of six with a
// sliding window, and another frequency of rotation in those.
//
// Scores are scaled by the head length; the 27B model, which is known by its 62
// blocks, by the embedding's share of a head. What files of some converters
// leave out is as published: the norm's epsilon, the frequencies of rotation,
// and the stretching of the larger models (known by their blocks) to more than
// the 32768 positions that they were first trained on: by 8, in the blocks
// without a window (transformers, models/gemma3/convert_gemma3_weights.py). A
// file without a window has none, and one frequency.
#include "loaders/architectures/gemma3.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"

namespace weft {

ValueId Gemma3Blocks(ModelBuilder& m, const RopeOptions& global,
                     AttentionOptions attention) {
  const ModelConfig& c = m.config;
  RopeOptions local = m.UnscaledRopeOf(RopeStyle::kHalves);
  local.base = c.Number(kGemma3LocalBase.name);
  ValueId x = m.Scale(EmbedTokens(m), std::sqrt(c.embedding_length));
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    attention.window = c.WindowOf(block);
    Heads heads = SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x));
    heads = RotateHeads(m, block, NormHeads(m, block, heads),
                        c.Slides(block) ? local : global);
    const ValueId attended = CachedAttention(m, block, heads, attention);
    x = Residual(m, blk + "attn_residual",
                 RmsNorm(m, blk + "post_attention_norm", attended), x);
    const ValueId fed = GatedFeedForward(
        m, block, RmsNorm(m, blk + "ffn_norm", x), Activation::kGeluTanh);
    x = Residual(m, blk + "ffn_residual",
                 RmsNorm(m, blk + "post_ffw_norm", fed), x);
  }
  return x;
}

namespace {

constexpr char kLogitCap[] = "final_logit_softcapping";
constexpr int64_t kBlocksOf27B = 62;

// A file that says nothing of it: 4B, 12B and 27B.
bool IsStretchedAsPublished(const ModelConfig& c) {
  constexpr int64_t kBlocks[] = {34, 48, kBlocksOf27B};
  return !c.says_rope_scaling && !c.sliding_blocks.empty() &&
         c.trained_context_length > 32768 &&
         std::find(std::begin(kBlocks), std::end(kBlocks), c.block_count) !=
             std::end(kBlocks);
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  RopeOptions global = m.RopeOf(RopeStyle::kHalves);
  if (IsStretchedAsPublished(c)) global.scale = 1.0 / 8;
  AttentionOptions attention = DefaultAttention(c);
  if (c.block_count == kBlocksOf27B) {
    attention.scale = std::sqrt(static_cast<double>(c.head_count) /
                                static_cast<double>(c.embedding_length));
  }

  ValueId x = Gemma3Blocks(m, global, attention);
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  ValueId logits = Logits(m, x);
  if (c.Number(kLogitCap) > 0) logits = m.Softcap(logits, c.Number(kLogitCap));
  m.graph().AddOutput("logits", logits);
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.handled_keys = {"attention.sliding_window"};
  traits.window_period = 6;
  traits.default_epsilon = 1e-6;
  traits.default_freq_base = 1e6;
  traits.keys = {{kLogitCap, 0, 1e6, 0}, kGemma3LocalBase};
  return traits;
}

}  // namespace

const Architecture kGemma3 = {"gemma3", Traits(), Build};

}  // namespace weft
