// "panel16", the packed layout of quantised weights: 16 output rows side by
// side, one SIMD lane each, without loss.
//
// A panel holds 16 rows over the whole depth, as a sequence of super-blocks of
// the weight type's own length (32 or 256 columns):
//   for each 32 columns: the quants, low bits first, then the high bits
//   for each 32 columns: the planes, 16 integer scales or minimums each
//   d, then dmin or m: 16 float16 each, where the type has them
// Q8_0 alone keeps all quants of the panel first and all scales after, so that
// quants stay on cache lines and are multiplied where they lie.
//
// Quants are unsigned codes. Element k of 32 belongs to group g = k / 4; a
// vector of 64 bytes has, for each lane, the 4 codes of one group: byte
// 4 * lane + k % 4, an operand of the int8 dot product. b bits per code make b
// vectors: group g lies in vector g % b at bit b * (g / b). Five-bit codes are
// 4 low bits and 1 high bit, and so on.
//
// Codebook types have indices in place of codes, a byte each: those of 16 or 32
// columns in one vector, byte 4 * lane + i for the i-th. Behind them stand the
// signs as codes of one bit (where the eighth sign of a run follows from seven,
// a bit of the scale or of the run's index has its place), and the high bits of
// the indices, one or two bytes for each lane. Ternary digits five to a byte
// keep the bytes of a super-block of 256 columns: those of four columns side by
// side in 13 vectors.
//
// What lies where for a type follows from its BlockFormat
// (ops/formats/format.h). Constants and static functions only: included by
// files of any instruction set (see half.h).
#pragma once

#include <stdint.h>

#include "ops/formats/formats.h"

namespace weft {

// Panels start on cache lines.
template <class Block>
static constexpr int64_t PanelBytes(int64_t depth) {
  return (depth / BlockFormat<Block>::kColumns *
              BlockFormat<Block>::kSuperBlockBytes +
          63) /
         64 * 64;
}

// Where the quants of columns 32b .. 32b+31 start in a panel.
template <class Block>
static constexpr int64_t PanelQuants(int64_t b) {
  using Panel = BlockFormat<Block>;
  return Panel::kQuantsFirst ? b * Panel::kQuantBytes
                             : b / Panel::kBlocks * Panel::kSuperBlockBytes +
                                   b % Panel::kBlocks * Panel::kQuantBytes;
}

// Where the planes and halves of super-block s start in a panel.
template <class Block>
static constexpr int64_t PanelMeta(int64_t s, int64_t depth) {
  using Panel = BlockFormat<Block>;
  return Panel::kQuantsFirst
             ? depth / 32 * Panel::kQuantBytes + s * 32 * Panel::kHalves
             : s * Panel::kSuperBlockBytes +
                   Panel::kBlocks * Panel::kQuantBytes;
}

// Two panels unpacked for prefill (panel_unpack.h): bytes of the quants of one,
// floats of scales per 32 columns of both, and the scratch of a pair. As signed
// bytes no quants are multiplied where they lie.
template <class Block, bool as_signed = false>
static constexpr int64_t UnpackedQuantBytes(int64_t depth) {
  return BlockFormat<Block>::kQuantsFirst && !as_signed ? 0 : 16 * depth;
}
template <class Block>
static constexpr int UnpackedScaleFloats() {
  return 32 * BlockFormat<Block>::kScalesPer32 *
         (BlockFormat<Block>::kHasMin ? 2 : 1);
}
template <class Block, bool as_signed = false>
static constexpr int64_t UnpackedPairBytes(int64_t depth) {
  return 2 * UnpackedQuantBytes<Block, as_signed>(depth) +
         depth / 32 * UnpackedScaleFloats<Block>() * 4;
}

}  // namespace weft
