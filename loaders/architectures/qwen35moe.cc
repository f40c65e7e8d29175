// Qwen3.5 as a mixture of experts, one of which all tokens go through, with a
// gate of its own.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/qwen35.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  BuildDeltaNetModel(m, Qwen35Family(m, ExpertsAndGatedOne));
}

void BuildNextTokenBlock(ModelBuilder& m) {
  BuildDeltaNetNextTokenBlock(m, Qwen35Family(m, ExpertsAndGatedOne));
}

}  // namespace

const Architecture kQwen35Moe = {"qwen35moe", WithExperts(Qwen35Traits()),
                                 Build, BuildNextTokenBlock};

}  // namespace weft
