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
  __m128i h[2];
  memcpy(h, &v, sizeof(v));
  const __m256 f[2] = {_mm256_cvtph_ps(h[0]), _mm256_cvtph_ps(h[1])};
  F32x16 r;
  memcpy(&r, f, sizeof(r));
  return r;
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
  __m256 f[2];
  memcpy(f, &v, sizeof(v));
  const __m128i h[2] = {_mm256_cvtps_ph(f[0], kNearest),
                        _mm256_cvtps_ph(f[1], kNearest)};
#endif
  U16x16 r;
  memcpy(&r, &h, sizeof(r));
  return r;
}

WEFT_INLINE F32x16 WidenBF16(U16x16 v) {
  return reinterpret_cast<F32x16>(__builtin_convertvector(v, U32x16) << 16);
}

WEFT_INLINE U16x16 NarrowBF16(F32x16 v) {
  const U32x16 bits = reinterpret_cast<U32x16>(v);
  const U32x16 rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const U32x16 quiet = (bits >> 16) | 0x40;
  const U32x16 nan = reinterpret_cast<U32x16>(IsNan(v));
  const U32x16 chosen = (nan & quiet) | (~nan & rounded);
  return __builtin_convertvector(chosen, U16x16);
}

}  // namespace
}  // namespace weft
