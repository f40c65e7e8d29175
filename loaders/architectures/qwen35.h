// What Qwen3.5 and its mixture of experts share: all but the feed-forward
// network.
#pragma once

#include "loaders/architectures/gated_delta_net.h"

namespace weft {

// `m` outlives it.
DeltaNetFamily Qwen35Family(ModelBuilder& m,
                            ValueId (*feed_forward)(ModelBuilder& m,
                                                    int64_t block, ValueId x));
ModelTraits Qwen35Traits();

}  // namespace weft
