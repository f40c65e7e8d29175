// Qwen3.5 as a mixture of experts, one of which all tokens go through, with a
// gate of its own.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/qwen35.h"

namespace weft {
namespace {

void Build(ModelBuilder& m) {
  BuildQwen35(m, [&m](int64_t block, ValueId x) {
    return ExpertsAndGatedOne(m, block, x);
  });
}

}  // namespace

const Architecture kQwen35Moe = {"qwen35moe", WithExperts(Qwen35Traits()),
                                 Build};

}  // namespace weft
