// The types of vector.h: sixteen floats, and sixteen integers of 32 bits.
//
// They are the compiler's vectors, but on AVX2: there GCC keeps what is wider
// than a register in memory, so they are two vectors of eight with the same
// operators. Lanes are independent, so that changes no bit.
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

typedef int8_t I8x16 __attribute__((vector_size(16)));
typedef uint16_t U16x16 __attribute__((vector_size(32)));

// Halves and quarters.
typedef float F32x8 __attribute__((vector_size(32)));
typedef float F32x4 __attribute__((vector_size(16)));
typedef int32_t I32x8 __attribute__((vector_size(32)));
typedef int32_t I32x4 __attribute__((vector_size(16)));
typedef uint32_t U32x8 __attribute__((vector_size(32)));

#if defined(__AVX2__) && !defined(__AVX512F__)

#define WEFT_VECTOR_HALVES 1

struct F32x16 {
  F32x8 low, high;
  float operator[](int i) const { return i < 8 ? low[i] : high[i - 8]; }
};

struct I32x16 {
  I32x8 low, high;
};

#define WEFT_HALVES(TYPE, OP)                                  \
  WEFT_INLINE TYPE operator OP(const TYPE& a, const TYPE& b) { \
    return {a.low OP b.low, a.high OP b.high};                 \
  }
#define WEFT_HALVES_AND_INT(OP)                            \
  WEFT_INLINE I32x16 operator OP(const I32x16& a, int b) { \
    return {a.low OP b, a.high OP b};                      \
  }
WEFT_HALVES(F32x16, +)
WEFT_HALVES(F32x16, -)
WEFT_HALVES(F32x16, *)
WEFT_HALVES(F32x16, /)
WEFT_HALVES(I32x16, +)
WEFT_HALVES(I32x16, -)
WEFT_HALVES(I32x16, &)
WEFT_HALVES(I32x16, |)
WEFT_HALVES_AND_INT(+)
WEFT_HALVES_AND_INT(&)
WEFT_HALVES_AND_INT(<<)
WEFT_HALVES_AND_INT(>>)
WEFT_HALVES_AND_INT(<)  // all ones where it holds
#undef WEFT_HALVES
#undef WEFT_HALVES_AND_INT

WEFT_INLINE I32x16 operator-(int a, const I32x16& b) {
  return {a - b.low, a - b.high};
}
WEFT_INLINE F32x16 operator-(const F32x16& a) { return {-a.low, -a.high}; }
WEFT_INLINE I32x16 operator~(const I32x16& a) { return {~a.low, ~a.high}; }

WEFT_INLINE F32x16 Splat(float x) {
  const F32x8 eight = {x, x, x, x, x, x, x, x};
  return {eight, eight};
}

// By halves: what is copied whole stays in memory.
WEFT_INLINE F32x16 Load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
WEFT_INLINE void Store(float* p, const F32x16& v) {
  _mm256_storeu_ps(p, v.low);
  _mm256_storeu_ps(p + 8, v.high);
}

WEFT_INLINE F32x8 LowHalf(const F32x16& v) { return v.low; }
WEFT_INLINE F32x8 HighHalf(const F32x16& v) { return v.high; }
WEFT_INLINE I32x8 LowHalf(const I32x16& v) { return v.low; }
WEFT_INLINE I32x8 HighHalf(const I32x16& v) { return v.high; }
WEFT_INLINE F32x16 Join(F32x8 low, F32x8 high) { return {low, high}; }
WEFT_INLINE I32x16 Join(I32x8 low, I32x8 high) { return {low, high}; }

// The same bits as the other type.
WEFT_INLINE I32x16 BitsOf(const F32x16& v) {
  return {reinterpret_cast<I32x8>(v.low), reinterpret_cast<I32x8>(v.high)};
}
WEFT_INLINE F32x16 FloatsOf(const I32x16& v) {
  return {reinterpret_cast<F32x8>(v.low), reinterpret_cast<F32x8>(v.high)};
}

#else

#define WEFT_VECTOR_HALVES 0

typedef float F32x16 __attribute__((vector_size(64)));
typedef int32_t I32x16 __attribute__((vector_size(64)));

WEFT_INLINE F32x16 Splat(float x) {
  return F32x16{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}

WEFT_INLINE F32x16 Load(const float* p) {
  F32x16 v;
  memcpy(&v, p, sizeof(v));
  return v;
}
WEFT_INLINE void Store(float* p, F32x16 v) { memcpy(p, &v, sizeof(v)); }

template <class Half, class Whole>
WEFT_INLINE Half HalfOf(Whole v, int which) {
  Half halves[2];
  memcpy(halves, &v, sizeof(halves));
  return halves[which];
}
WEFT_INLINE F32x8 LowHalf(F32x16 v) { return HalfOf<F32x8>(v, 0); }
WEFT_INLINE F32x8 HighHalf(F32x16 v) { return HalfOf<F32x8>(v, 1); }
WEFT_INLINE I32x8 LowHalf(I32x16 v) { return HalfOf<I32x8>(v, 0); }
WEFT_INLINE I32x8 HighHalf(I32x16 v) { return HalfOf<I32x8>(v, 1); }

template <class Whole, class Half>
WEFT_INLINE Whole Joined(Half low, Half high) {
  const Half halves[2] = {low, high};
  Whole v;
  memcpy(&v, halves, sizeof(v));
  return v;
}
WEFT_INLINE F32x16 Join(F32x8 low, F32x8 high) {
  return Joined<F32x16>(low, high);
}
WEFT_INLINE I32x16 Join(I32x8 low, I32x8 high) {
  return Joined<I32x16>(low, high);
}

WEFT_INLINE I32x16 BitsOf(F32x16 v) { return reinterpret_cast<I32x16>(v); }
WEFT_INLINE F32x16 FloatsOf(I32x16 v) { return reinterpret_cast<F32x16>(v); }

#endif

}  // namespace
}  // namespace weft
