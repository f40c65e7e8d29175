// Counts the calls of operator new (all threads) in a binary that links this.
#pragma once

#include <cstdint>

namespace weft {

int64_t AllocationCount();

// Calls while `inside` says yes on the calling thread (InsideOneDnn: what a
// library does on our behalf) are counted by the second number, not the first.
void CountApartWhile(bool (*inside)());
int64_t AllocationsApart();

}  // namespace weft
