// Arithmetic that does nothing but keep the machine's multipliers busy: what
// measured speeds are compared with.
//
// Each runs `count` of the instruction that the best kernels of an instruction
// set spend their time in, on independent registers, and tells how many
// operations that was (a multiply-add is two); 0 where there is no such
// instruction. Thread-safe.
#pragma once

#include <cstdint>

#include "ops/kernels/cpu.h"

namespace weft {

// Integer products of 8-bit numbers, with what adds them up to 32 bits: of
// vectors, and of tiles, whose instructions count as sixteen of the others
// (they take as many cycles).
int64_t SpinInt8(Isa isa, int64_t count);
int64_t SpinTileInt8(Isa isa, int64_t count);
// bfloat16 products added up in float32.
int64_t SpinBf16(Isa isa, int64_t count);
int64_t SpinF32(Isa isa, int64_t count);

// Reads `bytes` (a multiple of 64) once, in order; returns their xor.
uint64_t ReadOnce(const uint8_t* data, int64_t bytes);

}  // namespace weft
