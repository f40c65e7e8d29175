// Sixteen 16-bit floats, F16 or BF16, to and from F32x16. Widening is exact;
// narrowing rounds to nearest, ties to even, as half.h defines it, and keeps a
// NaN a NaN. See vector.h for why everything is in an unnamed namespace.
#pragma once

#include "ops/kernels/vector.h"

namespace weft {
namespace {

WEFT_INLINE U16x16 Load16(const uint16_t* p) {
  U16x16 v;
  memcpy(&v, p, sizeof(v));
  return v;
}

WEFT_INLINE void Store16(uint16_t* p, U16x16 v) { memcpy(p, &v, sizeof(v)); }

WEFT_INLINE F32x16 WidenF16(U16x16 v) {
#if defined(__AVX512F__)
  // The zeroing forms: GCC 12 warns of its own undefined operand in the others.
  return _mm512_maskz_cvtph_ps(0xffff, reinterpret_cast<__m256i>(v));
#elif defined(__aarch64__)
  uint16x4_t h[4];
  memcpy(h, &v, sizeof(h));
  float32x4_t f[4];
  for (int i = 0; i < 4; ++i) f[i] = vcvt_f32_f16(vreinterpret_f16_u16(h[i]));
  F32x16 r;
  memcpy(&r, f, sizeof(r));
  return r;
#else
  const __m256i h = reinterpret_cast<__m256i>(v);
  return Join(_mm256_cvtph_ps(_mm256_castsi256_si128(h)),
              _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1)));
#endif
}

WEFT_INLINE U16x16 NarrowF16(F32x16 v) {
#if defined(__aarch64__)
  // Rounds as the float mode says: to nearest.
  float32x4_t f[4];
  memcpy(f, &v, sizeof(f));
  uint16x4_t h[4];
  for (int i = 0; i < 4; ++i) h[i] = vreinterpret_u16_f16(vcvt_f16_f32(f[i]));
#elif defined(__AVX512F__)
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  const __m256i h = _mm512_maskz_cvtps_ph(0xffff, v, kNearest);
#else
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  const __m256i h = _mm256_set_m128i(_mm256_cvtps_ph(HighHalf(v), kNearest),
                                     _mm256_cvtps_ph(LowHalf(v), kNearest));
#endif
  U16x16 r;
  memcpy(&r, &h, sizeof(r));
  return r;
}

WEFT_INLINE F32x16 WidenBF16(U16x16 v) {
#if WEFT_VECTOR_HALVES
  const __m256i h = reinterpret_cast<__m256i>(v);
  return FloatsOf(Join(reinterpret_cast<I32x8>(
                           _mm256_cvtepu16_epi32(_mm256_castsi256_si128(h))),
                       reinterpret_cast<I32x8>(_mm256_cvtepu16_epi32(
                           _mm256_extracti128_si256(h, 1))))
                  << 16);
#else
  typedef uint32_t U32x16 __attribute__((vector_size(64)));
  return reinterpret_cast<F32x16>(__builtin_convertvector(v, U32x16) << 16);
#endif
}

// The upper 16 bits of each lane, rounded.
template <class Bits>
WEFT_INLINE Bits RoundedBF16(Bits bits, Bits nan) {
  const Bits rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const Bits quiet = (bits >> 16) | 0x40;
  return (nan & quiet) | (~nan & rounded);
}

WEFT_INLINE U16x16 NarrowBF16(F32x16 v) {
  const I32x16 nan = IsNan(v);
#if WEFT_VECTOR_HALVES
  const __m256i low = reinterpret_cast<__m256i>(RoundedBF16(
      reinterpret_cast<U32x8>(v.low), reinterpret_cast<U32x8>(nan.low)));
  const __m256i high = reinterpret_cast<__m256i>(RoundedBF16(
      reinterpret_cast<U32x8>(v.high), reinterpret_cast<U32x8>(nan.high)));
  // In turns, as in LowBytes.
  return reinterpret_cast<U16x16>(
      _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8));
#else
  typedef uint32_t U32x16 __attribute__((vector_size(64)));
  return __builtin_convertvector(
      RoundedBF16(reinterpret_cast<U32x16>(v), reinterpret_cast<U32x16>(nan)),
      U16x16);
#endif
}

}  // namespace
}  // namespace weft
