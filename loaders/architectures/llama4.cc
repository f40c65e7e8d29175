// Llama 4, its language model (Meta 2025): three blocks of four see a chunk of
// the text and rotate; the fourth sees all of it, without rotation, and its
// scores grow with the logarithm of the position. Every block, or every other,
// has experts of which one is chosen, weighted at its input, beside one for all
// tokens.
//
// Files say neither the chunk nor the growth: they are the published ones.
// Queries and keys are normalised, after the rotation, in all models but those
// of 128 experts (Maverick).
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"

namespace weft {
namespace {

constexpr int64_t kChunk = 8192;
constexpr int64_t kPeriod = 4;  // the last of so many blocks sees everything
constexpr double kTemperature = 0.1;
constexpr int64_t kExpertsOfMaverick = 128;
constexpr char kWindow[] = "attention.sliding_window";

Heads NormWithoutWeight(ModelBuilder& m, int64_t block, Heads heads) {
  const ModelConfig& c = m.config;
  const double epsilon = AsWritten(c.norm_epsilon);
  const std::string blk = BlockPrefix(block);
  m.Name(blk + "attn_q_norm");
  heads.q = m.RmsNorm(heads.q, kNone, epsilon, c.Block(block).head_count);
  m.Name(blk + "attn_k_norm");
  heads.k = m.RmsNorm(heads.k, kNone, epsilon, c.Block(block).head_count_kv);
  return heads;
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  RopeOptions rope = m.RopeOf(RopeStyle::kInterleaved);
  rope.factors = m.OptionalRopeFactors("rope_freqs.weight");
  // 0 where newer files say so: no chunks, and rotation everywhere.
  const int64_t chunk = static_cast<int64_t>(c.Number(kWindow));
  ExpertOptions experts = ExpertsOf(c);
  experts.score = ExpertOptions::Score::kSigmoidOfChosen;
  experts.weights_on_input = true;
  experts.shared_width = c.expert_feed_forward_length;

  ValueId x = EmbedTokens(m);
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const bool sees_all = chunk > 0 && block % kPeriod == kPeriod - 1;
    AttentionOptions attention = DefaultAttention(c);
    Heads heads = SeparateHeads(m, block, RmsNorm(m, blk + "attn_norm", x));
    if (sees_all) {
      attention.temperature = kTemperature;
      attention.temperature_period = kChunk;
      attention.temperature_offset = 1;
    } else {
      attention.chunk = chunk;
      heads = RotateHeads(m, block, heads, rope);
      if (c.expert_count != kExpertsOfMaverick) {
        heads = NormWithoutWeight(m, block, heads);
      }
    }
    const ValueId attended = CachedAttention(m, block, heads, attention);
    x = Residual(m, blk + "attn_residual", attended, x);
    const ValueId fed = FeedForwardOrExperts(
        m, block, RmsNorm(m, blk + "ffn_norm", x), experts);
    x = Residual(m, blk + "ffn_residual", fed, x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  m.graph().AddOutput("logits", Logits(m, x));
}

ModelTraits Traits() {
  ModelTraits traits = ExpertTraits(Gating::kSigmoid, /*normalize=*/false);
  traits.fixed_router = true;
  traits.keys = {{kWindow, 0, 1 << 30, kChunk}};
  return traits;
}

}  // namespace

const Architecture kLlama4 = {"llama4", Traits(), Build};

}  // namespace weft
