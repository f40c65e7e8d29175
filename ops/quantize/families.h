// The row quantisers, one per type, grouped into families by file.
//
// Callers go through ops/quantize.h, which checks what these require: n a
// multiple of the type's block, all values finite and within +-65504, dst large
// enough. Each writes the blocks of one row and keeps no state.
#pragma once

#include <cstdint>

namespace weft {
namespace quantize {

// plain_floats.cc
void ToF32(const float* src, void* dst, int64_t n);
void ToF16(const float* src, void* dst, int64_t n);
void ToBF16(const float* src, void* dst, int64_t n);

// blocks_of_32.cc
void ToQ4_0(const float* src, void* dst, int64_t n);
void ToQ4_1(const float* src, void* dst, int64_t n);
void ToQ5_0(const float* src, void* dst, int64_t n);
void ToQ5_1(const float* src, void* dst, int64_t n);
void ToQ8_0(const float* src, void* dst, int64_t n);

// k_quants.cc
void ToQ2_K(const float* src, void* dst, int64_t n);
void ToQ3_K(const float* src, void* dst, int64_t n);
void ToQ4_K(const float* src, void* dst, int64_t n);
void ToQ5_K(const float* src, void* dst, int64_t n);
void ToQ6_K(const float* src, void* dst, int64_t n);

// iq4.cc
void ToIQ4_NL(const float* src, void* dst, int64_t n);
void ToIQ4_XS(const float* src, void* dst, int64_t n);

}  // namespace quantize
}  // namespace weft
