// What the machine offers: the figures that kernels are quoted against.
#pragma once

#include <cstdint>

namespace weft {

// Runs `count` int8 dot-product instructions of 512 bits on independent
// registers; 128 operations each. False without AVX-512 VNNI.
bool RunDotProducts(int64_t count);
constexpr int64_t kOperationsPerDotProduct = 128;

// Reads `bytes` (a multiple of 256) once, in order; returns their xor.
uint64_t ReadOnce(const uint8_t* data, int64_t bytes);

}  // namespace weft
