// The two 16-bit float formats and float32, converted exactly.
//
// Widening is exact. Narrowing rounds to nearest, ties to even, as IEEE 754 and
// the CPU's own instructions do; overflow gives infinity, a NaN stays a (quiet)
// NaN with the payload bits that fit. Portable C++ so that every instruction
// set, and the reference, agree to the bit.
//
// Everything is static: files compiled for one instruction set include this
// header, and their copy must not be the one that the linker keeps for
// everyone.
#pragma once

#include <cstdint>
#include <cstring>

namespace weft {

static inline uint32_t FloatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static inline float FloatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits.
static inline float F16ToF32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t fraction = half & 0x3ff;
  if (exponent == 0x1f) {
    const uint32_t quiet = fraction != 0 ? 0x400000 : 0;
    return FloatFromBits(sign | 0x7f800000 | quiet | (fraction << 13));
  }
  if (exponent == 0) {
    // Subnormal: fraction * 2^-24, which a float holds exactly.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return FloatFromBits(sign | FloatBits(magnitude));
  }
  return FloatFromBits(sign | ((exponent + 112) << 23) | (fraction << 13));
}

static inline uint16_t F32ToF16(float value) {
  const uint32_t bits = FloatBits(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  uint32_t half;
  if (magnitude > 0x7f800000) {
    half = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  } else if (magnitude >= 0x477ff000) {
    // 65520, half way between the largest finite value and the next, rounds up.
    half = 0x7c00;
  } else if (magnitude >= 0x38800000) {
    // Normal. The carry of the rounding runs into the exponent, as it should.
    const uint32_t odd = (magnitude >> 13) & 1;
    half = (magnitude - 0x38000000 + 0xfff + odd) >> 13;
  } else if (magnitude >= 0x33000000) {
    // Subnormal: count units of 2^-24 in the 24-bit significand.
    const uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
    const uint32_t shift = 126 - (magnitude >> 23);
    const uint32_t rest = significand & ((1u << shift) - 1);
    const uint32_t middle = 1u << (shift - 1);
    half = significand >> shift;
    if (rest > middle || (rest == middle && (half & 1) != 0)) ++half;
  } else {
    half = 0;
  }
  return static_cast<uint16_t>(sign | half);
}

// bfloat16: the upper half of a float32.
static inline float BF16ToF32(uint16_t value) {
  return FloatFromBits(static_cast<uint32_t>(value) << 16);
}

static inline uint16_t F32ToBF16(float value) {
  const uint32_t bits = FloatBits(value);
  if ((bits & 0x7fffffff) > 0x7f800000) {
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  }
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace weft
