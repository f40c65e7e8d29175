// All quantised weight types; format.h says what they consist of.
#pragma once

#include "ops/formats/blocks_of_32.h"
#include "ops/formats/codebooks.h"
#include "ops/formats/fp4.h"
#include "ops/formats/iq4.h"
#include "ops/formats/k_quants.h"
#include "ops/formats/ternary.h"

namespace weft {

#define WEFT_CHECK_FORMAT(TYPE, ...)                                      \
  static_assert(sizeof(Block##TYPE) == ListedType<Block##TYPE>::kBytes && \
                    BlockFormat<Block##TYPE>::kBlocks > 0,                \
                #TYPE ": its block is not what the list of types says");
WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_CHECK_FORMAT)
#undef WEFT_CHECK_FORMAT

}  // namespace weft
