// What LFM2 and its mixture of experts share: all but the feed-forward network.
#pragma once

#include <functional>

#include "loaders/architectures/blocks.h"

namespace weft {

void BuildLfm2(
    ModelBuilder& m,
    const std::function<ValueId(int64_t block, ValueId x)>& feed_forward);
ModelTraits Lfm2Traits();

}  // namespace weft
