// LFM2 with experts in all blocks but the first few.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/experts.h"
#include "loaders/architectures/lfm2.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  ExpertOptions options = ExpertsOf(m.config);
  options.choice_bias = Bias::kRequired;
  BuildLfm2(m, [&](int64_t block, ValueId x) {
    return FeedForwardOrExperts(m, block, x, options);
  });
}

ModelTraits Traits() {
  ModelTraits traits = Lfm2Traits();
  HandleExperts(&traits, Gating::kSigmoid, /*normalize=*/true);
  return traits;
}

}  // namespace

const Architecture kLfm2Moe = {"lfm2moe", Traits(), Build};

}  // namespace weft
