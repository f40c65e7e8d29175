// "panel16", the packed layout of quantised weights: 16 output rows side by
// side, one SIMD lane each, without loss.
//
// A panel holds 16 rows over the whole depth, as a sequence of super-blocks of
// the weight type's own length (32 or 256 columns):
//   for each 32 columns: the quants, low bits first, then the high bits
//   for each 32 columns: the planes, 16 integer scales or minimums each
//   d, then dmin or m: 16 float16 each
// Q8_0 alone keeps all quants of the panel first and all scales after, so that
// quants stay on cache lines and are multiplied where they lie.
//
// Quants are unsigned codes. Element k of 32 belongs to group g = k / 4; a
// vector of 64 bytes has, for each lane, the 4 codes of one group: byte
// 4 * lane + k % 4, an operand of the int8 dot product. b bits per code make b
// vectors: group g lies in vector g % b at bit b * (g / b). Five-bit codes are
// 4 low bits and 1 high bit, and so on.
//
// Constants and static functions only: included by files of any instruction set
// (see half.h).
#pragma once

#include <stdint.h>

#include "ops/kernels/blocks.h"

namespace weft {

enum class PanelScales {
  kHalf,            // scale = d
  kHalfMin,         // scale = d, value added = m
  kSubScale,        // scale = d * int8, one plane per scale
  kSubScaleMin,     // d * uint8 (plane 0), min = dmin * uint8 (plane 1)
  kNibbleScaleMin,  // per 16 columns one plane: d * low nibble, dmin * high
};

// code - kOffset is the quant; `codebook`: the code is an index of the IQ4
// codebook, whose values + 128 become the unsigned bytes that kernels multiply.
template <int columns, int low_bits, int high_bits, PanelScales scales,
          int planes, int offset, bool codebook>
struct PanelConstants {
  static constexpr int kColumns = columns;
  static constexpr int kBlocks = columns / 32;
  static constexpr int kLowBits = low_bits;
  static constexpr int kHighBits = high_bits;
  static constexpr PanelScales kScales = scales;
  static constexpr int kPlanes = planes;  // of 16 bytes, per 32 columns
  static constexpr int kOffset = offset;
  static constexpr bool kCodebook = codebook;
  static constexpr bool kHasMin = scales == PanelScales::kHalfMin ||
                                  scales == PanelScales::kSubScaleMin ||
                                  scales == PanelScales::kNibbleScaleMin;
  static constexpr int kHalves = kHasMin ? 2 : 1;  // of 16 float16
  // Different scales in 32 columns.
  static constexpr int kScalesPer32 =
      planes == 2 && scales != PanelScales::kSubScaleMin ? 2 : 1;
  // The largest unsigned byte that kernels multiply.
  static constexpr int kMaxByte =
      codebook ? 241 : (1 << (low_bits + high_bits)) - 1;
  static constexpr int kQuantBytes = 64 * (low_bits + high_bits);  // per 32
  static constexpr int kSuperBlockBytes =
      kBlocks * (kQuantBytes + 16 * planes) + 32 * kHalves;
  static constexpr bool kQuantsFirst = low_bits == 8;
};

template <class Block>
struct Panel16;

template <>
struct Panel16<BlockQ4_0>
    : PanelConstants<32, 4, 0, PanelScales::kHalf, 0, 8, false> {};
template <>
struct Panel16<BlockQ4_1>
    : PanelConstants<32, 4, 0, PanelScales::kHalfMin, 0, 0, false> {};
template <>
struct Panel16<BlockQ5_0>
    : PanelConstants<32, 4, 1, PanelScales::kHalf, 0, 16, false> {};
template <>
struct Panel16<BlockQ5_1>
    : PanelConstants<32, 4, 1, PanelScales::kHalfMin, 0, 0, false> {};
template <>
struct Panel16<BlockQ8_0>
    : PanelConstants<32, 8, 0, PanelScales::kHalf, 0, 128, false> {};
template <>
struct Panel16<BlockQ2_K>
    : PanelConstants<256, 2, 0, PanelScales::kNibbleScaleMin, 2, 0, false> {};
template <>
struct Panel16<BlockQ3_K>
    : PanelConstants<256, 2, 1, PanelScales::kSubScale, 2, 4, false> {};
template <>
struct Panel16<BlockQ4_K>
    : PanelConstants<256, 4, 0, PanelScales::kSubScaleMin, 2, 0, false> {};
template <>
struct Panel16<BlockQ5_K>
    : PanelConstants<256, 4, 1, PanelScales::kSubScaleMin, 2, 0, false> {};
template <>
struct Panel16<BlockQ6_K>
    : PanelConstants<256, 4, 2, PanelScales::kSubScale, 2, 32, false> {};
template <>
struct Panel16<BlockIQ4_NL>
    : PanelConstants<32, 4, 0, PanelScales::kHalf, 0, 128, true> {};
template <>
struct Panel16<BlockIQ4_XS>
    : PanelConstants<256, 4, 0, PanelScales::kSubScale, 1, 128, true> {};

// Panels start on cache lines.
template <class Block>
static constexpr int64_t PanelBytes(int64_t depth) {
  return (depth / Panel16<Block>::kColumns * Panel16<Block>::kSuperBlockBytes +
          63) /
         64 * 64;
}

// Where the quants of columns 32b .. 32b+31 start in a panel.
template <class Block>
static constexpr int64_t PanelQuants(int64_t b) {
  using Panel = Panel16<Block>;
  return Panel::kQuantsFirst ? b * Panel::kQuantBytes
                             : b / Panel::kBlocks * Panel::kSuperBlockBytes +
                                   b % Panel::kBlocks * Panel::kQuantBytes;
}

// Where the planes and halves of super-block s start in a panel.
template <class Block>
static constexpr int64_t PanelMeta(int64_t s, int64_t depth) {
  using Panel = Panel16<Block>;
  return Panel::kQuantsFirst
             ? depth / 32 * Panel::kQuantBytes + s * 32 * Panel::kHalves
             : s * Panel::kSuperBlockBytes +
                   Panel::kBlocks * Panel::kQuantBytes;
}

// Two panels unpacked for prefill (panel_unpack.h): bytes of the quants of one,
// floats of scales per 32 columns of both, and the scratch of a pair.
template <class Block>
static constexpr int64_t UnpackedQuantBytes(int64_t depth) {
  return Panel16<Block>::kQuantsFirst ? 0 : 16 * depth;
}
template <class Block>
static constexpr int UnpackedScaleFloats() {
  return 32 * Panel16<Block>::kScalesPer32 * (Panel16<Block>::kHasMin ? 2 : 1);
}
template <class Block>
static constexpr int64_t UnpackedPairBytes(int64_t depth) {
  return 2 * UnpackedQuantBytes<Block>(depth) +
         depth / 32 * UnpackedScaleFloats<Block>() * 4;
}

}  // namespace weft
