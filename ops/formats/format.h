// What a quantised weight type consists of. A family of types is one file here,
// with all that is known of them, and a type has one row in
// graph/quantized_types.h; tables, packers and kernels follow from both. For
// Block<type>, the block as files have it, such a file has:
//
//   struct Block<type>           plain and packed; the fields of the ggml
//                                library's block structures (MIT licence),
//                                which the GGUF specification refers to. d and
//                                dmin are float16, the scale of the quants and
//                                of the minimums; `scales` are integers that d
//                                multiplies; qs holds the low bits of the
//                                quants and qh the high bits.
//   BlockFormat<Block<type>>     a FormatOf: how it lies in panels
//   DecodeBlock(row, b, out)     elements 32b .. 32b+31 of a row of blocks
//   ReadPlane(block, b, p)       where the format has planes
//   SecondHalf(block)            where it has two halves
//   ReadCodes(row, b, codes)     where codes are not quants plus an offset
//   quantize::EncodeRow(src, blocks, n)
//
// What is missing does not compile. Whatever the block, 32 consecutive elements
// of a row come down to
//   value[i] = scale[i / 16] * q[i] - min[i / 16]
// with q a signed 8-bit integer (offset removed, levels looked up). Types with
// one scale per 32 give the same one twice; types without a minimum give +0.
//
// Rounding, the same for every kernel: scale and min are each ONE float32
// product, float(d) * float(integer scale); the value is a float32 product,
// then a float32 subtraction, never fused.
//
// Everything that computes is static or in an unnamed namespace: files of any
// instruction set include this (half.h). Little-endian hosts only.
#pragma once

#include <cstdint>

#include "graph/quantized_types.h"
#include "ops/kernels/half.h"

namespace weft {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "GGUF blocks are read in place: the host must be little-endian");

constexpr int kBlockSize = 32;        // elements in a block of the older types
constexpr int kSuperBlockSize = 256;  // elements in a block of the K types

// What the row of a type says.
template <class Block>
struct ListedType;
#define WEFT_LISTED(TYPE, NAME, ID, ELEMENTS, BYTES, ...) \
  struct Block##TYPE;                                     \
  template <>                                             \
  struct ListedType<Block##TYPE> {                        \
    static constexpr int kElements = ELEMENTS;            \
    static constexpr int kBytes = BYTES;                  \
  };
WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_LISTED)
#undef WEFT_LISTED

struct Decoded32 {
  int8_t q[32];
  float scale[2];  // elements 0-15 and 16-31
  float min[2];
};

// How a panel (kernels/matmul/panel16.h) gives scale and minimum, per scale.
enum class PanelScales {
  kHalf,            // scale = d
  kHalfMin,         // scale = d, value added = m
  kSubScale,        // scale = d * int8
  kSubScaleMin,     // d * uint8, min = dmin * another uint8
  kNibbleScaleMin,  // d * low nibble, min = dmin * high nibble
  kPowerOfTwo,      // scale = 2^(uint8 - 128)
};

// What a code stands for: code - offset, ...
template <int low_bits, int high_bits, int offset>
struct BitCodes {
  static constexpr int kLowBits = low_bits;
  static constexpr int kHighBits = high_bits;
  static constexpr int kOffset = offset;
  static constexpr int kMaxByte = (1 << (low_bits + high_bits)) - 1;
  static constexpr const int8_t* kLevels = nullptr;
};
// ... or one of 16 levels; what kernels multiply is the level + offset.
template <class Levels, int offset>
struct LevelCodes {
  static constexpr int kLowBits = 4;
  static constexpr int kHighBits = 0;
  static constexpr int kOffset = offset;
  static constexpr const int8_t* kLevels = Levels::kValues;
  static constexpr int Largest() {
    int largest = Levels::kValues[0];
    for (int value : Levels::kValues)
      largest = value > largest ? value : largest;
    return largest;
  }
  static constexpr int kMaxByte = Largest() + offset;
};

template <class Block>
struct BlockFormat;

// The constants of a format. Offsets are powers of two.
template <class Block, class Codes, PanelScales scales, int scales_per_32>
struct FormatOf : Codes {
  static constexpr int kColumns = ListedType<Block>::kElements;
  static constexpr int kBlocks = kColumns / 32;
  static constexpr PanelScales kScales = scales;
  // Different scales in 32 columns.
  static constexpr int kScalesPer32 = scales_per_32;
  static constexpr bool kHasMin = scales == PanelScales::kHalfMin ||
                                  scales == PanelScales::kSubScaleMin ||
                                  scales == PanelScales::kNibbleScaleMin;
  // Planes of 16 bytes per 32 columns.
  static constexpr int kPlanes =
      scales == PanelScales::kHalf || scales == PanelScales::kHalfMin
          ? 0
          : scales_per_32 * (scales == PanelScales::kSubScaleMin ? 2 : 1);
  // Of 16 float16.
  static constexpr int kHalves = scales == PanelScales::kPowerOfTwo ? 0
                                 : kHasMin                          ? 2
                                                                    : 1;
  // Per 32 columns.
  static constexpr int kQuantBytes = 64 * (Codes::kLowBits + Codes::kHighBits);
  static constexpr int kSuperBlockBytes =
      kBlocks * (kQuantBytes + 16 * kPlanes) + 32 * kHalves;
  static constexpr bool kQuantsFirst = Codes::kLowBits == 8;
};

static inline void SetScale(Decoded32* out, float scale, float min) {
  out->scale[0] = out->scale[1] = scale;
  out->min[0] = out->min[1] = min;
}

// 2^(exponent - 128): half of what an E8M0 scale stands for (OCP Microscaling
// Formats 1.0, 5.4.1), for levels that are doubled to be integers. 0 and 1 give
// subnormals; 255, a NaN there, gives 2^127.
static inline float HalfPowerOfTwo(uint8_t exponent) {
  return FloatFromBits(exponent < 2 ? 0x00200000u << exponent
                                    : (exponent - 1u) << 23);
}

// Nibbles as most types have them: low ones of elements 0-15, high ones of
// 16-31.
static inline void ReadNibbles(const uint8_t qs[16], uint8_t codes[32]) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = qs[i] & 15;
    codes[i + 16] = qs[i] >> 4;
  }
}

}  // namespace weft
