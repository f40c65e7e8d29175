// What Qwen3.5 and its mixture of experts share: all but the feed-forward
// network.
#pragma once

#include <functional>

#include "loaders/architectures/gated_delta_net.h"

namespace weft {

void BuildQwen35(
    ModelBuilder& m,
    const std::function<ValueId(int64_t block, ValueId x)>& feed_forward);
ModelTraits Qwen35Traits();

}  // namespace weft
