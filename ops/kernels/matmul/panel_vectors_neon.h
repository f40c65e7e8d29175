// What panel_unpack.h is written on, for registers of 16 bytes: see there.
#pragma once

#include <arm_neon.h>

#include "ops/kernels/vector.h"

namespace weft {
namespace {

typedef uint8x16_t ByteVector;
typedef int32x4_t IntVector;
typedef float32x4_t FloatVector;
constexpr int kParts = 4;

WEFT_INLINE ByteVector LoadBytes(const void* p) {
  return vld1q_u8(static_cast<const uint8_t*>(p));
}
WEFT_INLINE void StoreBytes(void* p, ByteVector a) {
  vst1q_u8(static_cast<uint8_t*>(p), a);
}
WEFT_INLINE void StoreFloats(float* p, FloatVector a) { vst1q_f32(p, a); }
WEFT_INLINE ByteVector SplatByte(int x) {
  return vdupq_n_u8(static_cast<uint8_t>(x));
}
WEFT_INLINE ByteVector And(ByteVector a, ByteVector b) {
  return vandq_u8(a, b);
}
WEFT_INLINE ByteVector OrMasked(ByteVector a, ByteVector b, ByteVector mask) {
  return vorrq_u8(a, vandq_u8(b, mask));
}
// The operators, since n is a constant only after unrolling.
WEFT_INLINE ByteVector ShiftRight(ByteVector a, int n) {
  const uint16x8_t lanes = vreinterpretq_u16_u8(a);
  return vreinterpretq_u8_u16(n >= 0 ? lanes >> n : lanes << -n);
}
WEFT_INLINE ByteVector LookUp(const uint8_t* table, ByteVector index) {
  return vqtbl1q_u8(vld1q_u8(table), index);
}
WEFT_INLINE FloatVector HalvesToFloats(const uint8_t* p) {
  return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}
WEFT_INLINE uint8x8_t LoadFourBytes(const uint8_t* p) {
  uint32_t word;
  memcpy(&word, p, sizeof(word));
  return vreinterpret_u8_u32(vdup_n_u32(word));
}
WEFT_INLINE IntVector UnsignedToInts(const uint8_t* p) {
  return vreinterpretq_s32_u32(
      vmovl_u16(vget_low_u16(vmovl_u8(LoadFourBytes(p)))));
}
WEFT_INLINE IntVector SignedToInts(const uint8_t* p) {
  return vmovl_s16(
      vget_low_s16(vmovl_s8(vreinterpret_s8_u8(LoadFourBytes(p)))));
}
WEFT_INLINE IntVector ShortsToInts(const uint8_t* p) {
  return vreinterpretq_s32_u32(
      vmovl_u16(vreinterpret_u16_u8(vld1_u8(p))));
}
WEFT_INLINE IntVector GatherWords(const uint32_t* table, IntVector index) {
  const uint32x4_t words = {table[index[0]], table[index[1]], table[index[2]],
                            table[index[3]]};
  return vreinterpretq_s32_u32(words);
}
WEFT_INLINE IntVector LowNibble(IntVector a) {
  return vandq_s32(a, vdupq_n_s32(15));
}
// Of an unsigned byte.
WEFT_INLINE IntVector HighNibble(IntVector a) { return vshrq_n_s32(a, 4); }
WEFT_INLINE FloatVector IntsToFloats(IntVector a) { return vcvtq_f32_s32(a); }
WEFT_INLINE FloatVector Multiply(FloatVector a, FloatVector b) {
  return vmulq_f32(a, b);
}
WEFT_INLINE FloatVector HalfPowersOfTwo(IntVector e) {
  const int32x4_t one = vdupq_n_s32(1);
  const int32x4_t normal = vshlq_n_s32(vsubq_s32(e, one), 23);
  const int32x4_t subnormal =
      vshlq_n_s32(vaddq_s32(vminq_s32(e, one), one), 21);
  return vreinterpretq_f32_s32(vmaxq_s32(normal, subnormal));
}
WEFT_INLINE FloatVector Negate(FloatVector a) { return vnegq_f32(a); }

}  // namespace
}  // namespace weft
