// Which kernels a plan may take.
#pragma once

#include <cstdint>

#include "ops/kernels/cpu.h"

namespace weft {

// How F16 and BF16 weights are multiplied: widened to f32 (exact), or as
// bfloat16 with rows that are rounded to it, sums in f32. The latter is for
// machines with bfloat16 arithmetic, twice as fast, and less exact.
enum class F16Compute : uint8_t { kF32, kBF16 };

struct KernelOptions {
  Isa isa = Isa::kRef;  // the cap
  F16Compute f16_compute = F16Compute::kF32;
};

}  // namespace weft
