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
//   FirstHalf(block)             where `d` is no field
//   SecondHalf(block)            where it has two halves
//   ReadCodes(row, b, codes)     where codes are not quants plus an offset
//   ReadGrid(block, b, out)      of codebooks, instead of ReadCodes
//   quantize::EncodeRow(src, importance, blocks, n)
//                                importance: a weight for the squared error of
//                                each element, or null where all weigh alike
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
  kSmallFloat,      // scale = half an unsigned E4M3
  kOdd,             // scale = d * (2 * nibble + 1) * the codebook's unit
  kOddInQuants,     // the same with a number that stands among the quants
};

// How codes lie in a panel (kernels/matmul/panel16.h).
enum class CodeForm { kBits, kGrid, kTernary };

// What a code stands for: code - offset, ...
template <int low_bits, int high_bits, int offset>
struct BitCodes {
  static constexpr CodeForm kForm = CodeForm::kBits;
  static constexpr int kQuantBytes = 64 * (low_bits + high_bits);
  static constexpr int kLowBits = low_bits;
  static constexpr int kHighBits = high_bits;
  static constexpr int kOffset = offset;
  static constexpr int kMaxByte = (1 << (low_bits + high_bits)) - 1;
  static constexpr bool kHasLevels = false;
  static constexpr const int8_t* kLevels = nullptr;
};
// ... or one of 16 levels; what kernels multiply is the level + offset.
template <class Levels, int offset, int bits = 4>
struct LevelCodes {
  static constexpr CodeForm kForm = CodeForm::kBits;
  static constexpr int kQuantBytes = 64 * bits;
  static constexpr int kLowBits = bits;
  static constexpr int kHighBits = 0;
  static constexpr int kOffset = offset;
  static constexpr bool kHasLevels = true;
  static constexpr const int8_t* kLevels = Levels::kValues;
  static constexpr int Largest() {
    int largest = Levels::kValues[0];
    for (int value : Levels::kValues)
      largest = value > largest ? value : largest;
    return largest;
  }
  static constexpr int kMaxByte = Largest() + offset;
};
// ... or a level by the digit of a codeword, which an index stands for, and by
// the element's sign (codebooks.h).
template <class Grid, int offset>
struct GridCodes : LevelCodes<Grid, offset> {
  using Codebook = Grid;
  static constexpr CodeForm kForm = CodeForm::kGrid;
  static constexpr int kIndexVectors = 8 / Grid::kRun;  // of 64 bytes
  static constexpr int kQuantBytes =
      64 * kIndexVectors + (Grid::kHasSigns ? 64 : 0) + 16 * Grid::kHighBytes;
};
// ... or the digit of a number to the base 3, less 1 (ternary.h).
struct TernaryCodes : BitCodes<2, 0, 1> {
  static constexpr CodeForm kForm = CodeForm::kTernary;
  static constexpr int kQuantBytes = 13 * 64 / 8;  // of 256 columns, an eighth
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
      scales == PanelScales::kHalf || scales == PanelScales::kHalfMin ||
              scales == PanelScales::kOddInQuants
          ? 0
      : scales == PanelScales::kOdd
          ? 1
          : scales_per_32 * (scales == PanelScales::kSubScaleMin ? 2 : 1);
  static constexpr bool kOddScales =
      scales == PanelScales::kOdd || scales == PanelScales::kOddInQuants;
  // Of 16 float16.
  static constexpr int kHalves =
      scales == PanelScales::kPowerOfTwo || scales == PanelScales::kSmallFloat
          ? 0
      : kHasMin ? 2
                : 1;
  static constexpr int kSuperBlockBytes =
      kBlocks * (Codes::kQuantBytes + 16 * kPlanes) + 32 * kHalves;
  static constexpr bool kQuantsFirst = Codes::kLowBits == 8;
  // Cheap enough to unpack again for every tile of rows.
  static constexpr bool kTilesUnpack = Codes::kForm == CodeForm::kBits;
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

// Half of an unsigned E4M3 of seven bits: exponent bias 7, of the exponent 0 a
// subnormal (OCP 8-bit Floating Point Specification 1.0; without its NaN).
static inline float HalfSmallFloat(uint8_t bits) {
  const int exponent = bits >> 3, fraction = bits & 7;
  const int number = exponent > 0 ? 8 + fraction : fraction;
  return static_cast<float>(number) *
         FloatFromBits(
             static_cast<uint32_t>((exponent > 0 ? exponent : 1) + 127 - 11)
             << 23);
}

// d, by which name a block has it.
template <class Block>
static inline uint16_t FirstHalf(const Block& block) {
  return block.d;
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
