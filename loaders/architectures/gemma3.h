// What Gemma 3 and its embedding model share.
#pragma once

#include "loaders/architectures/blocks.h"

namespace weft {

// The base of rotation in blocks with a window, and its default.
inline constexpr ModelKey kGemma3LocalBase = {"rope.freq_base_swa", 1, 1e9,
                                              10000};

// The embedded tokens, scaled, and all blocks: four norms in each, rotation by
// `global` or, in those with a window, by another base. `attention` is every
// block's but for its window.
ValueId Gemma3Blocks(ModelBuilder& m, const RopeOptions& global,
                     AttentionOptions attention);

}  // namespace weft
