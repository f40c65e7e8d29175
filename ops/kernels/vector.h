// Sixteen floats at a time, in plain C++ on vectors (vector_types.h): one text
// serves AVX2 (two registers), AVX-512 (one) and NEON (four). Every
// operation acts lane by lane as IEEE 754 says, and reductions have one fixed
// tree, so all instruction sets give the same bits.
//
// Included by files that are compiled for one instruction set each: everything
// is in an unnamed namespace, so no copy leaks into another file. Requires
// hardware fused multiply-add for speed; without it the results are the same.
#pragma once

#include "ops/kernels/vector_types.h"

namespace weft {
namespace {

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
  return Join(_mm256_fmadd_ps(LowHalf(a), LowHalf(b), LowHalf(c)),
              _mm256_fmadd_ps(HighHalf(a), HighHalf(b), HighHalf(c)));
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
  return Join(LowHalf(a) < LowHalf(b), HighHalf(a) < HighHalf(b));
#endif
}

// Lanes of `a` where the mask is all ones, of `b` where it is zero.
WEFT_INLINE F32x16 Select(I32x16 mask, F32x16 a, F32x16 b) {
#if defined(__AVX512F__)
  return mask ? a : b;
#elif WEFT_VECTOR_HALVES
  return Join(mask.low ? a.low : b.low, mask.high ? a.high : b.high);
#else
  return FloatsOf((mask & BitsOf(a)) | (~mask & BitsOf(b)));
#endif
}

WEFT_INLINE F32x16 Max(F32x16 a, F32x16 b) { return Select(Less(b, a), a, b); }

// Without the sign bit, only NaN has more than infinity's bits.
WEFT_INLINE I32x16 IsNan(F32x16 x) {
  return (0x7f800000 - (BitsOf(x) & 0x7fffffff)) >> 31;
}

WEFT_INLINE F32x16 Absolute(F32x16 a) {
  return FloatsOf(BitsOf(a) & 0x7fffffff);
}

WEFT_INLINE F32x16 ToFloat(I32x16 a) {
#if WEFT_VECTOR_HALVES
  return Join(__builtin_convertvector(a.low, F32x8),
              __builtin_convertvector(a.high, F32x8));
#else
  return __builtin_convertvector(a, F32x16);
#endif
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
#elif WEFT_VECTOR_HALVES
  // Packing saturates, which a byte does not meet; 64-bit parts of the two
  // come out in turns.
  const __m256i words = _mm256_permute4x64_epi64(
      _mm256_packus_epi32(reinterpret_cast<__m256i>(a.low & 0xff),
                          reinterpret_cast<__m256i>(a.high & 0xff)),
      0xd8);
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words),
                                         _mm256_extracti128_si256(words, 1));
  return reinterpret_cast<I8x16>(bytes);
#else
  return __builtin_convertvector(a, I8x16);
#endif
}

// Lanes 1, 0, 3, 2, 5, ...
WEFT_INLINE F32x16 SwapPairs(F32x16 v) {
#if WEFT_VECTOR_HALVES
  return Join(_mm256_permute_ps(v.low, 0xb1), _mm256_permute_ps(v.high, 0xb1));
#else
  typedef uint64_t U64x8 __attribute__((vector_size(64)));
  const U64x8 pairs = reinterpret_cast<U64x8>(v);
  return reinterpret_cast<F32x16>((pairs << 32) | (pairs >> 32));
#endif
}

// Nearest integer, ties to even, for |x| < 2^22: adding 1.5 * 2^23 leaves the
// integer in the low bits of the sum.
WEFT_INLINE I32x16 RoundToInt(F32x16 x) {
  const F32x16 magic = Splat(12582912.0f);
  const F32x16 sum = x + magic;
  return BitsOf(sum) - BitsOf(magic);
}

// Fixed trees: lane i with i + 8, then + 4, + 2, + 1.
WEFT_INLINE float ReduceSum(F32x16 v) {
  const F32x8 eight = LowHalf(v) + HighHalf(v);
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
  const F32x8 low = LowHalf(v), high = HighHalf(v);
  const F32x8 eight = low > high ? low : high;
  F32x4 q[2];
  memcpy(q, &eight, sizeof(q));
#endif
  const F32x4 four = q[0] > q[1] ? q[0] : q[1];
  const float a = four[0] > four[2] ? four[0] : four[2];
  const float b = four[1] > four[3] ? four[1] : four[3];
  return a > b ? a : b;
}

WEFT_INLINE I32x16 Max(I32x16 a, I32x16 b) {
#if defined(__AVX512F__)
  return a > b ? a : b;
#elif defined(__aarch64__)
  I32x4 x[4], y[4], most[4];
  memcpy(x, &a, sizeof(x));
  memcpy(y, &b, sizeof(y));
  for (int i = 0; i < 4; ++i) most[i] = x[i] > y[i] ? x[i] : y[i];
  I32x16 r;
  memcpy(&r, most, sizeof(r));
  return r;
#else
  const I32x8 low = LowHalf(a) > LowHalf(b) ? LowHalf(a) : LowHalf(b);
  const I32x8 high = HighHalf(a) > HighHalf(b) ? HighHalf(a) : HighHalf(b);
  return Join(low, high);
#endif
}

WEFT_INLINE int32_t ReduceSum(I32x16 v) {
  const I32x8 eight = LowHalf(v) + HighHalf(v);
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
  const I32x8 low = LowHalf(v), high = HighHalf(v);
  const I32x8 eight = low > high ? low : high;
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
  const F32x16 scale_a = FloatsOf((half + 127) << 23);
  const F32x16 scale_b = FloatsOf((n - half + 127) << 23);
  F32x16 result = p * scale_a * scale_b;
  result = Select(Less(x, low), Splat(0.0f), result);
  result = Select(Less(high, x), Splat(__builtin_inff()), result);
  return Select(IsNan(x), x, result);
}

// x * sigmoid(x) = x / (1 + e^-x); Elfwing et al. 2017 (arXiv:1702.03118).
WEFT_INLINE F32x16 Silu(F32x16 x) { return x / (Splat(1.0f) + Exp(-x)); }

// clamped_gate (ops/elementwise.cc).
WEFT_INLINE F32x16 ClampedGate(F32x16 gate, F32x16 up, float limit,
                               float slope) {
  const F32x16 most = Splat(limit), least = Splat(-limit);
  const F32x16 g = Select(Less(most, gate), most, gate);
  F32x16 u = Select(Less(most, up), most, up);
  u = Select(Less(u, least), least, u);
  return g / (Splat(1.0f) + Exp(g * Splat(-slope))) * (u + Splat(1.0f));
}

// x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3); Hendrycks and
// Gimpel 2016 (arXiv:1606.08415). That is x / (1 + e^(-2u)).
WEFT_INLINE F32x16 GeluTanh(F32x16 x) {
  const F32x16 inner =
      MultiplyAdd(x * x, Splat(0.044715f * 1.5957691216057308f),
                  Splat(1.5957691216057308f));
  return x / (Splat(1.0f) + Exp(-(x * inner)));
}

// Within 2 ulp: 1 - 2 / (e^2|x| + 1), and below 0.625, where that would cancel,
// an odd polynomial, fitted for the least relative error (2e-10).
WEFT_INLINE F32x16 Tanh(F32x16 x) {
  const F32x16 size = Absolute(x);
  const F32x16 large =
      Splat(1.0f) - Splat(2.0f) / (Exp(size + size) + Splat(1.0f));
  const F32x16 square = x * x;
  F32x16 p = Splat(0.00214275213f);
  p = MultiplyAdd(p, square, Splat(-0.00817715176f));
  p = MultiplyAdd(p, square, Splat(0.0217005949f));
  p = MultiplyAdd(p, square, Splat(-0.0539467413f));
  p = MultiplyAdd(p, square, Splat(0.133332058f));
  p = MultiplyAdd(p, square, Splat(-0.333333308f));
  const F32x16 small = MultiplyAdd(x * square, p, x);
  const F32x16 signed_large = Select(Less(x, F32x16{}), -large, large);
  return Select(Less(size, Splat(0.625f)), small, signed_large);
}

}  // namespace
}  // namespace weft
