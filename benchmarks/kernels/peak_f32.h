// The rate of f32 multiply-adds, which dense kernels are quoted against.
#pragma once

#include <cstdint>

namespace weft {

// Runs `count` fused multiply-adds of 512 bits on independent registers; 32
// operations each. False without AVX-512.
bool RunMultiplyAdds(int64_t count);
constexpr int64_t kOperationsPerMultiplyAdd = 32;

}  // namespace weft
