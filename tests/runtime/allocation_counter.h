// Counts the calls of operator new in a test binary that links this.
#pragma once

#include <cstdint>

namespace weft {

int64_t AllocationCount();

}  // namespace weft
