// The widest float register of the instruction set that a file is compiled for,
// for register tiles: GCC keeps the 16 lanes of vector.h in memory where a
// register has fewer. Lanes are independent here, so the width never changes a
// result. See vector.h for why everything is in an unnamed namespace.
#pragma once

#include "ops/kernels/vector.h"

namespace weft {
namespace {

#if defined(__AVX512F__)

constexpr int kLanes = 16;
typedef __m512 Native;

WEFT_INLINE Native NativeZero() { return _mm512_setzero_ps(); }
WEFT_INLINE Native NativeSplat(float x) { return _mm512_set1_ps(x); }
WEFT_INLINE Native NativeLoad(const float* p) { return _mm512_loadu_ps(p); }
WEFT_INLINE void NativeStore(float* p, Native v) { _mm512_storeu_ps(p, v); }

// a * b + c, rounded once.
WEFT_INLINE Native NativeMultiplyAdd(Native a, Native b, Native c) {
  return _mm512_fmadd_ps(a, b, c);
}

// The zeroing forms: GCC 12 warns of its own undefined operand in the others.
WEFT_INLINE Native NativeWidenF16(const void* p) {
  return _mm512_maskz_cvtph_ps(
      0xffff, _mm256_loadu_si256(static_cast<const __m256i*>(p)));
}

WEFT_INLINE Native NativeWidenBF16(const void* p) {
  const __m256i v = _mm256_loadu_si256(static_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(
      0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, v), 16));
}

WEFT_INLINE Native NativeWidenI8(const void* p) {
  const __m128i v = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return _mm512_maskz_cvtepi32_ps(0xffff,
                                  _mm512_maskz_cvtepi8_epi32(0xffff, v));
}

#else

constexpr int kLanes = 8;
typedef __m256 Native;

WEFT_INLINE Native NativeZero() { return _mm256_setzero_ps(); }
WEFT_INLINE Native NativeSplat(float x) { return _mm256_set1_ps(x); }
WEFT_INLINE Native NativeLoad(const float* p) { return _mm256_loadu_ps(p); }
WEFT_INLINE void NativeStore(float* p, Native v) { _mm256_storeu_ps(p, v); }

WEFT_INLINE Native NativeMultiplyAdd(Native a, Native b, Native c) {
  return _mm256_fmadd_ps(a, b, c);
}

WEFT_INLINE Native NativeWidenF16(const void* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}

WEFT_INLINE Native NativeWidenBF16(const void* p) {
  const __m128i v = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}

WEFT_INLINE Native NativeWidenI8(const void* p) {
  const __m128i v = _mm_loadl_epi64(static_cast<const __m128i*>(p));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v));
}

#endif

// The scalar F16 at p.
WEFT_INLINE float LoadF16(const uint16_t* p) { return _cvtsh_ss(*p); }

}  // namespace
}  // namespace weft
