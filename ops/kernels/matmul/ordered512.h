// Instructions of AVX-512 that stay in the order in which they are written: one
// each, as `asm volatile`.
#pragma once

#include <immintrin.h>
#include <stdint.h>

#include "ops/kernels/vector_types.h"

#define WEFT_UNROLL _Pragma("GCC unroll 16")

namespace weft {
namespace {

WEFT_INLINE __m512i Broadcast32(const void* p) {
  __m512i y;
  __asm__ volatile("vpbroadcastd %1,%0"
                   : "=v"(y)
                   : "m"(*static_cast<const int32_t*>(p)));
  return y;
}
WEFT_INLINE __m512 BroadcastFloat(const float* p) {
  return _mm512_castsi512_ps(Broadcast32(p));
}
WEFT_INLINE __m512i LoadOrdered(const void* p) {
  __m512i y;
  __asm__ volatile("vmovdqu64 %1,%0"
                   : "=v"(y)
                   : "m"(*static_cast<const __m512i_u*>(p)));
  return y;
}
WEFT_INLINE __m512 ConvertOrdered(__m512i a) {
  __m512 y;
  __asm__ volatile("vcvtdq2ps %1,%0" : "=v"(y) : "v"(a));
  return y;
}
WEFT_INLINE __m512 ConvertOrdered(const int32_t* p) {
  __m512 y;
  __asm__ volatile("vcvtdq2ps %1,%0"
                   : "=v"(y)
                   : "m"(*reinterpret_cast<const __m512i*>(p)));
  return y;
}
WEFT_INLINE __m512 MultiplyOrdered(__m512 a, __m512 b) {
  __m512 y;
  __asm__ volatile("vmulps %2,%1,%0" : "=v"(y) : "v"(a), "v"(b));
  return y;
}
WEFT_INLINE void FmaOrdered(__m512& sum, __m512 a, __m512 b) {
  __asm__ volatile("vfmadd231ps %2,%1,%0" : "+v"(sum) : "v"(a), "v"(b));
}
WEFT_INLINE void FmaOrdered(__m512& sum, __m512 a, const float* b) {
  __asm__ volatile("vfmadd231ps %2,%1,%0"
                   : "+v"(sum)
                   : "v"(a), "m"(*reinterpret_cast<const __m512*>(b)));
}

}  // namespace
}  // namespace weft
