// Counts the calls of operator new (all threads) in a binary that links this.
#pragma once

#include <cstdint>

namespace weft {

int64_t AllocationCount();

}  // namespace weft
