// Sixteen floats at a time, in plain C++ on the compiler's vector extension:
// one text serves AVX2 (two registers), AVX-512 (one) and NEON (four). Every
// operation acts lane by lane as IEEE 754 says, and reductions have one fixed
// tree, so all instruction sets give the same bits.
//
// Included by files that are compiled for one instruction set each: everything
// is in an unnamed namespace, so no copy leaks into another file. Requires
// hardware fused multiply-add for speed; without it the results are the same.
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define WEFT_INLINE inline __attribute__((always_inline))

namespace weft {
namespace {

typedef float F32x16 __attribute__((vector_size(64)));
typedef int32_t I32x16 __attribute__((vector_size(64)));
typedef uint32_t U32x16 __attribute__((vector_size(64)));
typedef int8_t I8x16 __attribute__((vector_size(16)));
typedef uint16_t U16x16 __attribute__((vector_size(32)));

// Halves and quarters, for what GCC does badly on the whole.
typedef float F32x8 __attribute__((vector_size(32)));
typedef float F32x4 __attribute__((vector_size(16)));
typedef int32_t I32x8 __attribute__((vector_size(32)));
typedef int32_t I32x4 __attribute__((vector_size(16)));

WEFT_INLINE F32x16 Splat(float x) {
  return F32x16{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}

WEFT_INLINE F32x16 Load(const float* p) {
  F32x16 v;
  memcpy(&v, p, sizeof(v));
  return v;
}

WEFT_INLINE void Store(float* p, F32x16 v) { memcpy(p, &v, sizeof(v)); }

// The first `n` of 16 lanes, the others zero. 0 <= n <= 16.
WEFT_INLINE F32x16 LoadPart(const float* p, int n) {
  F32x16 v = {};
  memcpy(&v, p, static_cast<size_t>(n) * sizeof(float));
  return v;
}

WEFT_INLINE void StorePart(float* p, F32x16 v, int n) {
  memcpy(p, &v, static_cast<size_t>(n) * sizeof(float));
}

// a * b + c, rounded once.
WEFT_INLINE F32x16 MultiplyAdd(F32x16 a, F32x16 b, F32x16 c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  // GCC does not vectorise a loop of fmaf over half registers.
  struct Halves {
    __m256 low, high;
  } x, y, z;
  memcpy(&x, &a, sizeof(x));
  memcpy(&y, &b, sizeof(y));
  memcpy(&z, &c, sizeof(z));
  z.low = _mm256_fmadd_ps(x.low, y.low, z.low);
  z.high = _mm256_fmadd_ps(x.high, y.high, z.high);
  F32x16 r;
  memcpy(&r, &z, sizeof(r));
  return r;
#elif defined(__aarch64__)
  float32x4_t x[4], y[4], z[4];
  memcpy(x, &a, sizeof(x));
  memcpy(y, &b, sizeof(y));
  memcpy(z, &c, sizeof(z));
  for (int i = 0; i < 4; ++i) z[i] = vfmaq_f32(z[i], x[i], y[i]);
  F32x16 r;
  memcpy(&r, z, sizeof(r));
  return r;
#else
  F32x16 r;
  for (int i = 0; i < 16; ++i) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#endif
}

// All ones in lanes where a < b. Use this and not the operator: GCC 12 takes
// comparisons wider than a register apart lane by lane.
WEFT_INLINE I32x16 Less(F32x16 a, F32x16 b) {
#if defined(__AVX512F__)
  return a < b;
#elif defined(__aarch64__)
  F32x4 x[4], y[4];
  memcpy(x, &a, sizeof(x));
  memcpy(y, &b, sizeof(y));
  I32x4 less[4];
  for (int i = 0; i < 4; ++i) less[i] = x[i] < y[i];
  I32x16 r;
  memcpy(&r, less, sizeof(r));
  return r;
#else
  F32x8 x[2], y[2];
  memcpy(x, &a, sizeof(x));
  memcpy(y, &b, sizeof(y));
  const I32x8 less[2] = {x[0] < y[0], x[1] < y[1]};
  I32x16 r;
  memcpy(&r, less, sizeof(r));
  return r;
#endif
}

// Lanes of `a` where the mask is all ones, of `b` where it is zero.
WEFT_INLINE F32x16 Select(I32x16 mask, F32x16 a, F32x16 b) {
#if defined(__AVX512F__)
  return mask ? a : b;
#else
  const I32x16 x = reinterpret_cast<I32x16>(a);
  const I32x16 y = reinterpret_cast<I32x16>(b);
  return reinterpret_cast<F32x16>((mask & x) | (~mask & y));
#endif
}

WEFT_INLINE F32x16 Max(F32x16 a, F32x16 b) { return Select(Less(b, a), a, b); }

// Without the sign bit, only NaN has more than infinity's bits.
WEFT_INLINE I32x16 IsNan(F32x16 x) {
  return (0x7f800000 - (reinterpret_cast<I32x16>(x) & 0x7fffffff)) >> 31;
}

WEFT_INLINE F32x16 Absolute(F32x16 a) {
  const I32x16 bits = reinterpret_cast<I32x16>(a) & 0x7fffffff;
  return reinterpret_cast<F32x16>(bits);
}

WEFT_INLINE F32x16 ToFloat(I32x16 a) {
  return __builtin_convertvector(a, F32x16);
}

// The low byte of each lane.
WEFT_INLINE I8x16 LowBytes(I32x16 a) {
#if defined(__aarch64__)
  // GCC 12 takes this conversion apart lane by lane.
  int32x4_t x[4];
  memcpy(x, &a, sizeof(x));
  const int16x8_t low = vcombine_s16(vmovn_s32(x[0]), vmovn_s32(x[1]));
  const int16x8_t high = vcombine_s16(vmovn_s32(x[2]), vmovn_s32(x[3]));
  const int8x16_t bytes = vcombine_s8(vmovn_s16(low), vmovn_s16(high));
  I8x16 r;
  memcpy(&r, &bytes, sizeof(r));
  return r;
#else
  return __builtin_convertvector(a, I8x16);
#endif
}

// Nearest integer, ties to even, for |x| < 2^22: adding 1.5 * 2^23 leaves the
// integer in the low bits of the sum.
WEFT_INLINE I32x16 RoundToInt(F32x16 x) {
  const F32x16 magic = Splat(12582912.0f);
  const F32x16 sum = x + magic;
  return reinterpret_cast<I32x16>(sum) - reinterpret_cast<I32x16>(magic);
}

// Fixed trees: lane i with i + 8, then + 4, + 2, + 1.
WEFT_INLINE float ReduceSum(F32x16 v) {
  F32x8 h[2];
  memcpy(h, &v, sizeof(h));
  const F32x8 eight = h[0] + h[1];
  F32x4 q[2];
  memcpy(q, &eight, sizeof(q));
  const F32x4 four = q[0] + q[1];
  return (four[0] + four[2]) + (four[1] + four[3]);
}

WEFT_INLINE float ReduceMax(F32x16 v) {
#if defined(__aarch64__)
  F32x4 h[4];
  memcpy(h, &v, sizeof(h));
  const F32x4 q[2] = {h[0] > h[2] ? h[0] : h[2], h[1] > h[3] ? h[1] : h[3]};
#else
  F32x8 h[2];
  memcpy(h, &v, sizeof(h));
  const F32x8 eight = h[0] > h[1] ? h[0] : h[1];
  F32x4 q[2];
  memcpy(q, &eight, sizeof(q));
#endif
  const F32x4 four = q[0] > q[1] ? q[0] : q[1];
  const float a = four[0] > four[2] ? four[0] : four[2];
  const float b = four[1] > four[3] ? four[1] : four[3];
  return a > b ? a : b;
}

WEFT_INLINE I32x16 Max(I32x16 a, I32x16 b) {
#if defined(__aarch64__)
  I32x4 x[4], y[4], most[4];
  memcpy(x, &a, sizeof(x));
  memcpy(y, &b, sizeof(y));
  for (int i = 0; i < 4; ++i) most[i] = x[i] > y[i] ? x[i] : y[i];
#else
  I32x8 x[2], y[2];
  memcpy(x, &a, sizeof(x));
  memcpy(y, &b, sizeof(y));
  const I32x8 most[2] = {x[0] > y[0] ? x[0] : y[0], x[1] > y[1] ? x[1] : y[1]};
#endif
  I32x16 r;
  memcpy(&r, most, sizeof(r));
  return r;
}

WEFT_INLINE int32_t ReduceSum(I32x16 v) {
  I32x8 h[2];
  memcpy(h, &v, sizeof(h));
  const I32x8 eight = h[0] + h[1];
  I32x4 q[2];
  memcpy(q, &eight, sizeof(q));
  const I32x4 four = q[0] + q[1];
  return (four[0] + four[2]) + (four[1] + four[3]);
}

WEFT_INLINE int32_t ReduceMax(I32x16 v) {
#if defined(__aarch64__)
  I32x4 h[4];
  memcpy(h, &v, sizeof(h));
  const I32x4 q[2] = {h[0] > h[2] ? h[0] : h[2], h[1] > h[3] ? h[1] : h[3]};
#else
  I32x8 h[2];
  memcpy(h, &v, sizeof(h));
  const I32x8 eight = h[0] > h[1] ? h[0] : h[1];
  I32x4 q[2];
  memcpy(q, &eight, sizeof(q));
#endif
  const I32x4 four = q[0] > q[1] ? q[0] : q[1];
  const int32_t a = four[0] > four[2] ? four[0] : four[2];
  const int32_t b = four[1] > four[3] ? four[1] : four[3];
  return a > b ? a : b;
}

// e^x within 2 ulp: x = n ln 2 + r, |r| <= ln 2 / 2, then a degree-6 polynomial
// in r (Taylor's, enough for single precision on this interval; Cody and Waite,
// Software Manual for the Elementary Functions, 1980, for the reduction).
// 0 below -87.3 (no subnormal results), infinity above 88.7, NaN for NaN.
WEFT_INLINE F32x16 Exp(F32x16 x) {
  const F32x16 low = Splat(-87.33654f);
  const F32x16 high = Splat(88.72283f);
  const F32x16 clamped =
      Select(Less(x, low), low, Select(Less(high, x), high, x));
  const I32x16 n = RoundToInt(clamped * Splat(1.44269504088896341f));
  const F32x16 nf = ToFloat(n);
  F32x16 r = MultiplyAdd(nf, Splat(-0.693145751953125f), clamped);
  r = MultiplyAdd(nf, Splat(-1.428606765330187e-6f), r);
  F32x16 p = Splat(1.0f / 5040.0f);
  p = MultiplyAdd(p, r, Splat(1.0f / 720.0f));
  p = MultiplyAdd(p, r, Splat(1.0f / 120.0f));
  p = MultiplyAdd(p, r, Splat(1.0f / 24.0f));
  p = MultiplyAdd(p, r, Splat(1.0f / 6.0f));
  p = MultiplyAdd(p, r, Splat(0.5f));
  p = MultiplyAdd(p, r, Splat(1.0f));
  p = MultiplyAdd(p, r, Splat(1.0f));
  // 2^n in two steps, since n = 128 has no exponent of its own.
  const I32x16 half = n >> 1;
  const F32x16 scale_a = reinterpret_cast<F32x16>((half + 127) << 23);
  const F32x16 scale_b = reinterpret_cast<F32x16>((n - half + 127) << 23);
  F32x16 result = p * scale_a * scale_b;
  result = Select(Less(x, low), Splat(0.0f), result);
  result = Select(Less(high, x), Splat(__builtin_inff()), result);
  return Select(IsNan(x), x, result);
}

// x * sigmoid(x) = x / (1 + e^-x); Elfwing et al. 2017 (arXiv:1702.03118).
WEFT_INLINE F32x16 Silu(F32x16 x) { return x / (Splat(1.0f) + Exp(-x)); }

}  // namespace
}  // namespace weft
