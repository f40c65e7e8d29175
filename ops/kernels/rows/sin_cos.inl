// Sine and cosine of eight doubles.
#pragma once

#include "ops/kernels/vector.h"

namespace weft {
namespace {

typedef double F64x8 __attribute__((vector_size(64)));
typedef int64_t I64x8 __attribute__((vector_size(64)));

WEFT_INLINE F64x8 Splat64(double x) { return F64x8{x, x, x, x, x, x, x, x}; }

// For |x| < 2^20: x = k pi/2 + r with |r| <= pi/4, pi/2 in two parts of which
// the first has 33 bits, so that k times it is exact (Cody and Waite, as for
// Exp). Taylor series to r^11 and r^12: error below 1e-11, far less than the
// float that the result becomes. Only plain operations: the same bits
// everywhere.
WEFT_INLINE void SinCos(F64x8 x, F32x8* sin, F32x8* cos) {
  const F64x8 magic =
      Splat64(6755399441055744.0);  // 1.5 * 2^52, see RoundToInt
  const F64x8 shifted = x * Splat64(0.63661977236758134308) + magic;
  const F64x8 k = shifted - magic;
  const I64x8 quadrant = reinterpret_cast<I64x8>(shifted) & 3;
  const F64x8 r = (x - k * Splat64(1.57079632673412561417)) -
                  k * Splat64(6.07710050650619224932e-11);
  const F64x8 r2 = r * r;
  F64x8 s = Splat64(-1.0 / 39916800.0);
  s = s * r2 + Splat64(1.0 / 362880.0);
  s = s * r2 + Splat64(-1.0 / 5040.0);
  s = s * r2 + Splat64(1.0 / 120.0);
  s = s * r2 + Splat64(-1.0 / 6.0);
  s = r + r * (s * r2);
  F64x8 c = Splat64(1.0 / 479001600.0);
  c = c * r2 + Splat64(-1.0 / 3628800.0);
  c = c * r2 + Splat64(1.0 / 40320.0);
  c = c * r2 + Splat64(-1.0 / 720.0);
  c = c * r2 + Splat64(1.0 / 24.0);
  c = c * r2 + Splat64(-0.5);
  c = Splat64(1.0) + c * r2;
  // Odd quadrants swap the two; the sign bit comes from the quadrant.
  const I64x8 odd = -(quadrant & 1);
  const I64x8 si = reinterpret_cast<I64x8>(s);
  const I64x8 ci = reinterpret_cast<I64x8>(c);
  const I64x8 sin_sign = (quadrant & 2) << 62;
  const I64x8 cos_sign = ((quadrant + 1) & 2) << 62;
  const I64x8 sin_bits = ((ci & odd) | (si & ~odd)) ^ sin_sign;
  const I64x8 cos_bits = ((si & odd) | (ci & ~odd)) ^ cos_sign;
  *sin = __builtin_convertvector(reinterpret_cast<F64x8>(sin_bits), F32x8);
  *cos = __builtin_convertvector(reinterpret_cast<F64x8>(cos_bits), F32x8);
}

}  // namespace
}  // namespace weft
