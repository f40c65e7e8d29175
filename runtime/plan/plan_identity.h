// What a plan's results depend on, so that what was computed by it may be kept.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/plan/plan.h"

namespace weft {

// Equal for two plans only if every step gives the same bits: made of the
// graph with its kernels, all bytes of the weights, and this program's own
// bytes, since kernels change with it. Reads all weights, which must have been
// made: some 0.1 s for a gigabyte.
std::string PlanIdentity(const Plan& plan);

// xxh3 of this program's bytes, read once; 0 where the system does not say.
uint64_t HashOfThisProgram();

// What ranks exchange in the steps of a plan's part, in order and in sizes of
// the whole: "N exchanges" of the largest bucket, and a hash of those of all.
// Equal for all parts of one plan.
std::string ExchangesOf(const Plan& plan);

}  // namespace weft
