// Nomic Embed (Nussbaum et al. 2024, arXiv:2402.01613; with experts: Nussbaum
// and Duderstadt 2025, arXiv:2502.07972): BERT with rotation in place of
// learned positions, and a gated network with SiLU; or, in the second, a plain
// one with GELU, and in some blocks a mixture of such.
//
// The published mixture adds one bias after the sum over experts, which files
// do not have. Texts beyond the trained context would need another base of
// rotation (dynamic NTK), which files do not have either.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/encoder.h"
#include "loaders/architectures/experts.h"

namespace weft {
namespace {

constexpr char kEvery[] = "moe_every_n_layers";

ValueId SiluFeedForward(ModelBuilder& m, int64_t block, ValueId x) {
  return GatedFeedForward(m, block, x, Activation::kSilu);
}

// Of every so many blocks the second.
bool HasExperts(const ModelConfig& c, int64_t block) {
  const int64_t every = static_cast<int64_t>(c.Number(kEvery));
  return every > 0 && block % every == 1;
}

// Experts without gates, weighted by softmax over all of them.
ValueId Mixture(ModelBuilder& m, int64_t block, ValueId x) {
  const ModelConfig& c = m.config;
  if (!HasExperts(c, block)) return GeluFeedForward(m, block, x);
  const std::string blk = BlockPrefix(block);
  const int64_t d = c.embedding_length, f = c.expert_feed_forward_length;
  const Chosen chosen = RouteToExperts(m, blk, x, ExpertsOf(c));
  const ValueId up = ExpertLinear(m, blk + "ffn_up_exps", x, chosen.ids, f, d,
                                  Bias::kOptional);
  m.Name(blk + "ffn_act_exps");
  const ValueId hidden = m.Gelu(up, GeluApproximation::kTanh);
  const ValueId down = ExpertLinear(m, blk + "ffn_down_exps", hidden,
                                    chosen.ids, d, f, Bias::kOptional);
  m.Name(blk + "ffn_experts");
  return m.WeightedSum(down, chosen.weights);
}

void BuildGated(ModelBuilder& m) { BuildRotatedBert(m, SiluFeedForward); }

void BuildMixture(ModelBuilder& m) { BuildRotatedBert(m, Mixture); }

ModelTraits Traits() {
  ModelTraits traits = EncoderTraits();
  traits.rope = true;
  return traits;
}

ModelTraits MixtureTraits() {
  ModelTraits traits = Traits();
  traits.handled_keys.push_back("expert_count");
  traits.keys = {{kEvery, 0, 65536, 0}};
  return traits;
}

}  // namespace

const Architecture kNomicBert = {"nomic-bert", Traits(), BuildGated};
const Architecture kNomicBertMoe = {"nomic-bert-moe", MixtureTraits(),
                                    BuildMixture};

}  // namespace weft
