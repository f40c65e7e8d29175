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

// Of 16 pairs of BF16 the first halves (which = 0) or the second (1).
WEFT_INLINE Native NativeWidenHalfPairs(const void* p, int which) {
  const __m512i v = _mm512_sll_epi32(_mm512_loadu_si512(p),
                                     _mm_cvtsi32_si128(16 - 16 * which));
  return _mm512_castsi512_ps(
      _mm512_and_si512(v, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
}

WEFT_INLINE Native NativeWidenI8(const void* p) {
  const __m128i v = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return _mm512_maskz_cvtepi32_ps(0xffff,
                                  _mm512_maskz_cvtepi8_epi32(0xffff, v));
}

#elif defined(__aarch64__)

constexpr int kLanes = 4;
typedef float32x4_t Native;

WEFT_INLINE Native NativeZero() { return vdupq_n_f32(0.0f); }
WEFT_INLINE Native NativeSplat(float x) { return vdupq_n_f32(x); }
WEFT_INLINE Native NativeLoad(const float* p) { return vld1q_f32(p); }
WEFT_INLINE void NativeStore(float* p, Native v) { vst1q_f32(p, v); }

WEFT_INLINE Native NativeMultiplyAdd(Native a, Native b, Native c) {
  return vfmaq_f32(c, a, b);
}

WEFT_INLINE Native NativeWidenF16(const void* p) {
  uint16x4_t v;
  memcpy(&v, p, sizeof(v));
  return vcvt_f32_f16(vreinterpret_f16_u16(v));
}

WEFT_INLINE Native NativeWidenBF16(const void* p) {
  uint16x4_t v;
  memcpy(&v, p, sizeof(v));
  return vreinterpretq_f32_u32(vshll_n_u16(v, 16));
}

// Of 4 pairs of BF16 the first halves (which = 0) or the second (1).
WEFT_INLINE Native NativeWidenHalfPairs(const void* p, int which) {
  uint32x4_t v;
  memcpy(&v, p, sizeof(v));
  v = vshlq_u32(v, vdupq_n_s32(16 - 16 * which));
  return vreinterpretq_f32_u32(vandq_u32(v, vdupq_n_u32(0xffff0000)));
}

WEFT_INLINE Native NativeWidenI8(const void* p) {
  int32_t word;
  memcpy(&word, p, sizeof(word));
  const int8x8_t v = vreinterpret_s8_s32(vdup_n_s32(word));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(v))));
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

// Of 8 pairs of BF16 the first halves (which = 0) or the second (1).
WEFT_INLINE Native NativeWidenHalfPairs(const void* p, int which) {
  const __m256i v =
      _mm256_sll_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)),
                       _mm_cvtsi32_si128(16 - 16 * which));
  return _mm256_castsi256_ps(
      _mm256_and_si256(v, _mm256_set1_epi32(static_cast<int>(0xffff0000))));
}

WEFT_INLINE Native NativeWidenI8(const void* p) {
  const __m128i v = _mm_loadl_epi64(static_cast<const __m128i*>(p));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v));
}

#endif

// Of each two rows that are kStep apart, the second's first half of every 2
// kStep lanes for the first's second half.
template <int kStep>
WEFT_INLINE void ExchangeLanes(Native* rows) {
  typedef int32_t Lanes __attribute__((vector_size(sizeof(Native))));
  Lanes first = {}, second = {};
#pragma GCC unroll 16
  for (int lane = 0; lane < kLanes; ++lane) {
    const bool upper = (lane & kStep) != 0;
    first[lane] = upper ? kLanes + lane - kStep : lane;
    second[lane] = upper ? kLanes + lane : lane + kStep;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if ((i & kStep) != 0) continue;
    const Native a = rows[i], b = rows[i + kStep];
    rows[i] = __builtin_shuffle(a, b, first);
    rows[i + kStep] = __builtin_shuffle(a, b, second);
  }
}

// Lane j of row i and lane i of row j, of kLanes rows, change places.
WEFT_INLINE void NativeTranspose(Native* rows) {
  ExchangeLanes<1>(rows);
  ExchangeLanes<2>(rows);
  if constexpr (kLanes > 4) ExchangeLanes<4>(rows);
  if constexpr (kLanes > 8) ExchangeLanes<8>(rows);
}

#if defined(__aarch64__)

// The scalar F16 at p.
WEFT_INLINE float LoadF16(const uint16_t* p) {
  float16_t half;
  memcpy(&half, p, sizeof(half));
  return half;
}

// to[j][i] = from[i][j] for i, j < 4; rows `from_row` and `to_row` floats
// apart.
WEFT_INLINE void Transpose4x4(const float* from, int64_t from_row, float* to,
                              int64_t to_row) {
  const float32x4_t a = vld1q_f32(from), b = vld1q_f32(from + from_row);
  const float32x4_t c = vld1q_f32(from + 2 * from_row);
  const float32x4_t d = vld1q_f32(from + 3 * from_row);
  // Columns 0 and 2, 1 and 3 of two rows.
  const float64x2_t ab02 = vreinterpretq_f64_f32(vtrn1q_f32(a, b));
  const float64x2_t ab13 = vreinterpretq_f64_f32(vtrn2q_f32(a, b));
  const float64x2_t cd02 = vreinterpretq_f64_f32(vtrn1q_f32(c, d));
  const float64x2_t cd13 = vreinterpretq_f64_f32(vtrn2q_f32(c, d));
  vst1q_f32(to, vreinterpretq_f32_f64(vzip1q_f64(ab02, cd02)));
  vst1q_f32(to + to_row, vreinterpretq_f32_f64(vzip1q_f64(ab13, cd13)));
  vst1q_f32(to + 2 * to_row, vreinterpretq_f32_f64(vzip2q_f64(ab02, cd02)));
  vst1q_f32(to + 3 * to_row, vreinterpretq_f32_f64(vzip2q_f64(ab13, cd13)));
}

#else

WEFT_INLINE float LoadF16(const uint16_t* p) { return _cvtsh_ss(*p); }

WEFT_INLINE void Transpose4x4(const float* from, int64_t from_row, float* to,
                              int64_t to_row) {
  __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + from_row);
  __m128 c = _mm_loadu_ps(from + 2 * from_row);
  __m128 d = _mm_loadu_ps(from + 3 * from_row);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(to, a);
  _mm_storeu_ps(to + to_row, b);
  _mm_storeu_ps(to + 2 * to_row, c);
  _mm_storeu_ps(to + 3 * to_row, d);
}

#endif

}  // namespace
}  // namespace weft
