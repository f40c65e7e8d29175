// Granite 3 (IBM 2024, "Granite 3.0 Language Models"): LLaMA with four numbers
// that multiply embeddings, scores and what each part adds, and divide logits.
// With experts, perhaps one of them for all tokens, it is granitemoe. All but
// hybrids divide their logits, so a file must say by what.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/experts.h"
#include "loaders/architectures/recurrent.h"

namespace weft {
namespace {

constexpr char kScoreScale[] = "attention.scale";
constexpr char kEmbeddingScale[] = "embedding_scale";
constexpr char kResidualScale[] = "residual_scale";
constexpr char kLogitScale[] = "logit_scale";
// Whether there is rotation at all.
constexpr char kRotates[] = "rope.scaling.finetuned";

// x times the number `key`, where the file has one.
ValueId ScaleBy(ModelBuilder& m, const char* key, ValueId x) {
  const double factor = m.config.Number(key);
  return factor == 0 ? x : m.Scale(x, factor);
}

void Build(ModelBuilder& m) {
  const ModelConfig& c = m.config;
  const RopeOptions rope = m.RopeOf(RopeStyle::kInterleaved);
  const bool rotates = c.Number(kRotates) != 0;
  const ExpertOptions experts = ExpertsOf(c);
  AttentionOptions attention = DefaultAttention(c);
  if (c.Number(kScoreScale) > 0) attention.scale = c.Number(kScoreScale);

  ValueId x = ScaleBy(m, kEmbeddingScale, EmbedTokens(m));
  for (int64_t block = 0; block < c.block_count && m.ok(); ++block) {
    const std::string blk = BlockPrefix(block);
    const ValueId normed = RmsNorm(m, blk + "attn_norm", x);
    ValueId mixed;
    if (c.Block(block).head_count_kv == 0) {
      mixed = Mamba2Mixer(m, block, normed);
    } else {
      const Heads heads = SeparateHeads(m, block, normed);
      mixed = CachedAttention(
          m, block, rotates ? RotateHeads(m, block, heads, rope) : heads,
          attention);
    }
    x = Residual(m, blk + "attn_residual", ScaleBy(m, kResidualScale, mixed),
                 x);
    const ValueId fed = FeedForwardOrExperts(
        m, block, RmsNorm(m, blk + "ffn_norm", x), experts);
    x = Residual(m, blk + "ffn_residual", ScaleBy(m, kResidualScale, fed), x);
  }
  x = RmsNorm(m, "output_norm", OutputRows(m, x));
  ValueId logits = Logits(m, x);
  if (c.Number(kLogitScale) > 0) {
    logits = m.Scale(logits, 1.0 / c.Number(kLogitScale));
  }
  m.graph().AddOutput("logits", logits);
}

ModelTraits Traits() {
  ModelTraits traits;
  traits.keys = {{kScoreScale, 0, 1e6, 0},
                 {kEmbeddingScale, 0, 1e6, 0},
                 {kResidualScale, 0, 1e6, 0},
                 {kLogitScale, 0, 1e6, 0, true},
                 {kRotates, 0, 1, 1}};
  return traits;
}

ModelTraits MixtureTraits() {
  ModelTraits traits = Traits();
  HandleExperts(&traits, Gating::kSoftmax, /*normalize=*/true);
  return traits;
}

// Granite 4.0 H and Bamba (IBM 2025): most blocks have a Mamba 2 mixer in place
// of attention.
ModelTraits HybridTraits() {
  ModelTraits traits = MixtureTraits();
  traits.blocks_without_attention = true;
  for (ModelKey& key : traits.keys) key.required = false;  // Bamba has none
  for (const ModelKey& key : SsmKeys()) traits.keys.push_back(key);
  return traits;
}

}  // namespace

const Architecture kGranite = {"granite", Traits(), Build};
const Architecture kGraniteMoe = {"granitemoe", MixtureTraits(), Build};
const Architecture kGraniteHybrid = {"granitehybrid", HybridTraits(), Build};

}  // namespace weft
