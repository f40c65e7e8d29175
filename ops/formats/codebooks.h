// The codebook types IQ2, IQ3 and IQ1: an index stands for 8 or 4 elements.
//
// The codeword of an index (grids.h) gives a digit for each element, the digit
// a level. With a sign for each element (IQ2, IQ3) levels are magnitudes; where
// seven signs stand for eight elements, the number of minus signs is even. IQ1
// has digits for -1, 0, 1 and shifts whole groups or codewords by +1/8 or -1/8
// instead: eight times that is an integer, and a shift is one more "sign" that
// all its elements have. So every element comes down to a code of four bits,
// the digit and 8 where it has its sign, and a table of 16 levels.
//
// A scale is d * (2s + 1), s of 3 or 4 bits, times the codebook's unit.
//
// The search for the best codewords is in fit_codebook.h.
#pragma once

#include <cstring>

#include "ops/formats/fit.h"
#include "ops/formats/fit_codebook.h"
#include "ops/formats/format.h"
#include "ops/formats/grids.h"

namespace weft {

#pragma pack(push, 1)

struct BlockIQ2_XXS {
  uint16_t d;
  struct Group {
    uint8_t index[4];
    uint32_t signs;  // four of seven bits, then the scale
  } groups[8];
};
struct BlockIQ2_XS {
  uint16_t d;
  uint16_t qs[32];    // per 8 elements: an index of nine bits, seven signs
  uint8_t scales[8];  // per 16 elements a nibble
};
struct BlockIQ2_S {
  uint16_t d;
  uint8_t qs[32];     // low bits of indices
  uint8_t signs[32];  // bit i: element i of 8
  uint8_t qh[8];      // per 32 elements: two high bits of each index
  uint8_t scales[8];  // as in IQ2_XS
};
struct BlockIQ3_XXS {
  uint16_t d;
  uint8_t qs[64];     // indices
  uint32_t signs[8];  // as in IQ2_XXS
};
struct BlockIQ3_S {
  uint16_t d;
  uint8_t qs[64];     // low bits of indices
  uint8_t qh[8];      // per 32 elements: the high bit of each index
  uint8_t signs[32];  // as in IQ2_S
  uint8_t scales[4];  // per 32 elements a nibble
};
struct BlockIQ1_S {
  uint16_t d;
  uint8_t qs[32];  // low bits of indices
  // Per 32 elements: three high bits of each index, three bits of the scale,
  // the shift.
  uint16_t qh[8];
};
struct BlockIQ1_M {
  uint8_t qs[32];  // low bits of indices
  uint8_t qh[16];  // per 8 elements a nibble: three high bits, the shift
  // Each: four scales of three bits, of 16 elements; a nibble of d, the lowest
  // first.
  uint16_t scales[4];
};

#pragma pack(pop)

// --- Codebooks ---

// What a codebook type is made of. Levels are those of the digits, then the
// same with the sign.
struct SignedCodebook {
  static constexpr bool kHasSigns = true;
  static constexpr bool kSevenSigns = false;
  static constexpr int kHighBytes = 0;  // of indices, per 32 elements in panels
};
struct MagnitudesIQ2 : SignedCodebook {
  static constexpr int kRun = 8;     // elements of a codeword
  static constexpr int kDigits = 3;  // values of a digit
  static constexpr float kUnit = 0.125f;
  static constexpr int kScales = 16;
  static constexpr int8_t kValues[16] = {8,  25,  43,  0, 0, 0, 0, 0,
                                         -8, -25, -43, 0, 0, 0, 0, 0};
};
struct CodebookIQ2_XXS : MagnitudesIQ2 {
  static constexpr int kIndexBits = 8;
  static constexpr bool kSevenSigns = true;
  static const uint32_t* Words() { return kGridIQ2_XXS; }
};
struct CodebookIQ2_XS : MagnitudesIQ2 {
  static constexpr int kIndexBits = 9;
  static constexpr bool kSevenSigns = true;
  static const uint32_t* Words() { return kGridIQ2_XS; }
};
struct CodebookIQ2_S : MagnitudesIQ2 {
  static constexpr int kIndexBits = 10;
  static constexpr int kHighBytes = 1;
  static const uint32_t* Words() { return kGridIQ2_S; }
};
struct CodebookIQ3_XXS : SignedCodebook {
  static constexpr int kRun = 4;
  static constexpr int kDigits = 8;
  static constexpr float kUnit = 0.25f;
  static constexpr int kScales = 16;
  static constexpr int8_t kValues[16] = {4,  12,  20,  28,  36,  44,  52,  62,
                                         -4, -12, -20, -28, -36, -44, -52, -62};
  static constexpr int kIndexBits = 8;
  static constexpr bool kSevenSigns = true;
  static const uint32_t* Words() { return kGridIQ3_XXS; }
};
struct CodebookIQ3_S : SignedCodebook {
  static constexpr int kRun = 4;
  static constexpr int kDigits = 8;
  static constexpr float kUnit = 1.0f;
  static constexpr int kScales = 16;
  static constexpr int8_t kValues[16] = {1,  3,  5,  7,  9,  11,  13,  15,
                                         -1, -3, -5, -7, -9, -11, -13, -15};
  static constexpr int kIndexBits = 9;
  static constexpr int kHighBytes = 1;
  static const uint32_t* Words() { return kGridIQ3_S; }
};
struct CodebookIQ1 {
  static constexpr int kRun = 8;
  static constexpr int kDigits = 3;
  static constexpr float kUnit = 0.125f;
  static constexpr int kScales = 8;
  static constexpr int8_t kValues[16] = {-7, 1,  9, 0, 0, 0, 0, 0,
                                         -9, -1, 7, 0, 0, 0, 0, 0};
  static constexpr int kIndexBits = 11;
  static constexpr bool kHasSigns = false;
  static constexpr bool kSevenSigns = false;
  static constexpr int kHighBytes = 2;
  static const uint32_t* Words() { return kGridIQ1; }
};
struct CodebookIQ1_S : CodebookIQ1 {
  // Of the two high bytes in panels: bits per index, and where its shift is.
  static constexpr int kHighStride = 3;
  static constexpr int ShiftBit(int /*run*/) { return 15; }
};
struct CodebookIQ1_M : CodebookIQ1 {
  static constexpr int kHighStride = 4;
  static constexpr int ShiftBit(int run) { return 4 * run + 3; }
};

// --- Format ---

template <>
struct BlockFormat<BlockIQ2_XXS>
    : FormatOf<BlockIQ2_XXS, GridCodes<CodebookIQ2_XXS, 64>,
               PanelScales::kOddInQuants, 1> {};
template <>
struct BlockFormat<BlockIQ2_XS>
    : FormatOf<BlockIQ2_XS, GridCodes<CodebookIQ2_XS, 64>, PanelScales::kOdd,
               2> {};
template <>
struct BlockFormat<BlockIQ2_S>
    : FormatOf<BlockIQ2_S, GridCodes<CodebookIQ2_S, 64>, PanelScales::kOdd, 2> {
};
template <>
struct BlockFormat<BlockIQ3_XXS>
    : FormatOf<BlockIQ3_XXS, GridCodes<CodebookIQ3_XXS, 64>,
               PanelScales::kOddInQuants, 1> {};
template <>
struct BlockFormat<BlockIQ3_S>
    : FormatOf<BlockIQ3_S, GridCodes<CodebookIQ3_S, 16>, PanelScales::kOdd, 1> {
};
template <>
struct BlockFormat<BlockIQ1_S>
    : FormatOf<BlockIQ1_S, GridCodes<CodebookIQ1_S, 16>,
               PanelScales::kOddInQuants, 1> {};
template <>
struct BlockFormat<BlockIQ1_M>
    : FormatOf<BlockIQ1_M, GridCodes<CodebookIQ1_M, 16>, PanelScales::kOdd, 2> {
};

// --- Decoder ---

// What 32 elements are stored as.
struct Grid32 {
  uint16_t index[8];  // 8, or 4 of codewords of 8 elements
  uint32_t signs;     // bit i: element i has its sign
  uint8_t scale[2];   // of either half
};

// Seven signs, and the eighth that makes their number even.
static inline uint32_t EightSigns(uint32_t seven) {
  seven &= 127;
  return seven | static_cast<uint32_t>(__builtin_parity(seven)) << 7;
}

static inline uint32_t ThirtyTwoSigns(uint32_t packed) {
  uint32_t signs = 0;
  for (int run = 0; run < 4; ++run) {
    signs |= EightSigns(packed >> (7 * run)) << (8 * run);
  }
  return signs;
}

static inline uint32_t FourBytes(const uint8_t* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

static inline void ReadGrid(const BlockIQ2_XXS& block, int b, Grid32* out) {
  for (int run = 0; run < 4; ++run) {
    out->index[run] = block.groups[b].index[run];
  }
  const uint32_t signs = block.groups[b].signs;
  out->signs = ThirtyTwoSigns(signs);
  out->scale[0] = out->scale[1] = static_cast<uint8_t>(signs >> 28);
}

static inline void ReadGrid(const BlockIQ2_XS& block, int b, Grid32* out) {
  out->signs = 0;
  for (int run = 0; run < 4; ++run) {
    const uint16_t q = block.qs[4 * b + run];
    out->index[run] = q & 511;
    out->signs |= EightSigns(q >> 9) << (8 * run);
  }
  out->scale[0] = block.scales[b] & 15;
  out->scale[1] = block.scales[b] >> 4;
}

static inline void ReadGrid(const BlockIQ2_S& block, int b, Grid32* out) {
  for (int run = 0; run < 4; ++run) {
    const int high = block.qh[b] >> (2 * run) & 3;
    out->index[run] = static_cast<uint16_t>(block.qs[4 * b + run] | high << 8);
  }
  out->signs = FourBytes(block.signs + 4 * b);
  out->scale[0] = block.scales[b] & 15;
  out->scale[1] = block.scales[b] >> 4;
}

static inline void ReadGrid(const BlockIQ3_XXS& block, int b, Grid32* out) {
  for (int i = 0; i < 8; ++i) out->index[i] = block.qs[8 * b + i];
  out->signs = ThirtyTwoSigns(block.signs[b]);
  out->scale[0] = out->scale[1] = static_cast<uint8_t>(block.signs[b] >> 28);
}

static inline void ReadGrid(const BlockIQ3_S& block, int b, Grid32* out) {
  for (int i = 0; i < 8; ++i) {
    const int high = block.qh[b] >> i & 1;
    out->index[i] = static_cast<uint16_t>(block.qs[8 * b + i] | high << 8);
  }
  out->signs = FourBytes(block.signs + 4 * b);
  out->scale[0] = out->scale[1] =
      static_cast<uint8_t>(block.scales[b / 2] >> (4 * (b % 2)) & 15);
}

static inline void ReadGrid(const BlockIQ1_S& block, int b, Grid32* out) {
  const uint16_t high = block.qh[b];
  for (int run = 0; run < 4; ++run) {
    out->index[run] = static_cast<uint16_t>(block.qs[4 * b + run] |
                                            (high >> (3 * run) & 7) << 8);
  }
  out->signs = (high & 0x8000) != 0 ? 0xffffffffu : 0;
  out->scale[0] = out->scale[1] = high >> 12 & 7;
}

static inline void ReadGrid(const BlockIQ1_M& block, int b, Grid32* out) {
  out->signs = 0;
  for (int run = 0; run < 4; ++run) {
    const int nibble = block.qh[2 * b + run / 2] >> (4 * (run % 2)) & 15;
    out->index[run] =
        static_cast<uint16_t>(block.qs[4 * b + run] | (nibble & 7) << 8);
    if ((nibble & 8) != 0) out->signs |= 0xffu << (8 * run);
  }
  for (int h = 0; h < 2; ++h) {
    const int half = 2 * b + h;
    out->scale[h] = block.scales[half / 4] >> (3 * (half % 4)) & 7;
  }
}

static inline uint16_t FirstHalf(const BlockIQ1_M& block) {
  uint16_t d = 0;
  for (int i = 0; i < 4; ++i) {
    d = static_cast<uint16_t>(d | (block.scales[i] >> 12) << (4 * i));
  }
  return d;
}

// Digit, and 8 with the sign.
template <class Codebook>
static inline void CodesOfGrid(const Grid32& grid, uint8_t codes[32]) {
  const uint32_t* words = Codebook::Words();
  for (int i = 0; i < 32; ++i) {
    const uint32_t word = words[grid.index[i / Codebook::kRun]];
    const int shift = 8 * (i % 4) + (Codebook::kRun == 8 ? i % 8 / 4 * 4 : 0);
    codes[i] =
        static_cast<uint8_t>((word >> shift & 7) | (grid.signs >> i & 1) << 3);
  }
}

template <class Block>
static inline void DecodeGrid(const Block* row, int64_t b, Decoded32* out) {
  using Format = BlockFormat<Block>;
  Grid32 grid;
  ReadGrid(row[b / 8], static_cast<int>(b % 8), &grid);
  uint8_t codes[32];
  CodesOfGrid<typename Format::Codebook>(grid, codes);
  for (int i = 0; i < 32; ++i) out->q[i] = Format::kLevels[codes[i]];
  const float d = F16ToF32(FirstHalf(row[b / 8])) * Format::Codebook::kUnit;
  for (int h = 0; h < 2; ++h) {
    out->scale[h] = d * static_cast<float>(2 * grid.scale[h] + 1);
    out->min[h] = 0.0f;
  }
}

#define WEFT_CODEBOOK_TYPE(TYPE)                                          \
  static inline void DecodeBlock(const Block##TYPE* row, int64_t b,       \
                                 Decoded32* out) {                        \
    DecodeGrid(row, b, out);                                              \
  }                                                                       \
  static inline uint8_t ReadPlane(const Block##TYPE& block, int b, int) { \
    Grid32 grid;                                                          \
    ReadGrid(block, b, &grid);                                            \
    return static_cast<uint8_t>(grid.scale[0] | grid.scale[1] << 4);      \
  }
WEFT_CODEBOOK_TYPE(IQ2_XXS)
WEFT_CODEBOOK_TYPE(IQ2_XS)
WEFT_CODEBOOK_TYPE(IQ2_S)
WEFT_CODEBOOK_TYPE(IQ3_XXS)
WEFT_CODEBOOK_TYPE(IQ3_S)
WEFT_CODEBOOK_TYPE(IQ1_S)
WEFT_CODEBOOK_TYPE(IQ1_M)
#undef WEFT_CODEBOOK_TYPE

// --- Encoder ---

namespace quantize {
namespace {

// Seven of every eight signs.
inline uint32_t PackSevenSigns(uint32_t signs) {
  uint32_t packed = 0;
  for (int run = 0; run < 4; ++run) {
    packed |= (signs >> (8 * run) & 127) << (7 * run);
  }
  return packed;
}

inline void WriteGrid(const Grid32& grid, int b, BlockIQ2_XXS* block) {
  for (int run = 0; run < 4; ++run) {
    block->groups[b].index[run] = static_cast<uint8_t>(grid.index[run]);
  }
  block->groups[b].signs =
      PackSevenSigns(grid.signs) | static_cast<uint32_t>(grid.scale[0]) << 28;
}

inline void WriteGrid(const Grid32& grid, int b, BlockIQ2_XS* block) {
  for (int run = 0; run < 4; ++run) {
    block->qs[4 * b + run] = static_cast<uint16_t>(
        grid.index[run] | (grid.signs >> (8 * run) & 127) << 9);
  }
  block->scales[b] = static_cast<uint8_t>(grid.scale[0] | grid.scale[1] << 4);
}

inline void WriteGrid(const Grid32& grid, int b, BlockIQ2_S* block) {
  block->qh[b] = 0;
  for (int run = 0; run < 4; ++run) {
    block->qs[4 * b + run] = static_cast<uint8_t>(grid.index[run]);
    block->qh[b] |= static_cast<uint8_t>(grid.index[run] >> 8 << (2 * run));
  }
  std::memcpy(block->signs + 4 * b, &grid.signs, 4);
  block->scales[b] = static_cast<uint8_t>(grid.scale[0] | grid.scale[1] << 4);
}

inline void WriteGrid(const Grid32& grid, int b, BlockIQ3_XXS* block) {
  for (int i = 0; i < 8; ++i) {
    block->qs[8 * b + i] = static_cast<uint8_t>(grid.index[i]);
  }
  block->signs[b] =
      PackSevenSigns(grid.signs) | static_cast<uint32_t>(grid.scale[0]) << 28;
}

inline void WriteGrid(const Grid32& grid, int b, BlockIQ3_S* block) {
  block->qh[b] = 0;
  for (int i = 0; i < 8; ++i) {
    block->qs[8 * b + i] = static_cast<uint8_t>(grid.index[i]);
    block->qh[b] |= static_cast<uint8_t>(grid.index[i] >> 8 << i);
  }
  std::memcpy(block->signs + 4 * b, &grid.signs, 4);
  if (b % 2 == 0) block->scales[b / 2] = 0;
  block->scales[b / 2] |= static_cast<uint8_t>(grid.scale[0] << (4 * (b % 2)));
}

inline void WriteGrid(const Grid32& grid, int b, BlockIQ1_S* block) {
  int high = grid.scale[0] << 12 | (grid.signs != 0 ? 0x8000 : 0);
  for (int run = 0; run < 4; ++run) {
    block->qs[4 * b + run] = static_cast<uint8_t>(grid.index[run]);
    high |= grid.index[run] >> 8 << (3 * run);
  }
  block->qh[b] = static_cast<uint16_t>(high);
}

inline void WriteGrid(const Grid32& grid, int b, BlockIQ1_M* block) {
  block->qh[2 * b] = block->qh[2 * b + 1] = 0;
  for (int run = 0; run < 4; ++run) {
    block->qs[4 * b + run] = static_cast<uint8_t>(grid.index[run]);
    const int shift = (grid.signs >> (8 * run) & 1) != 0 ? 8 : 0;
    block->qh[2 * b + run / 2] |=
        static_cast<uint8_t>((grid.index[run] >> 8 | shift) << (4 * (run % 2)));
  }
  for (int h = 0; h < 2; ++h) {
    const int half = 2 * b + h;
    uint16_t& word = block->scales[half / 4];
    word = static_cast<uint16_t>(word | grid.scale[h] << (3 * (half % 4)));
  }
}

template <class Block>
void WriteFirstHalf(uint16_t d, Block* block) {
  block->d = d;
}
inline void WriteFirstHalf(uint16_t d, BlockIQ1_M* block) {
  for (int i = 0; i < 4; ++i) {
    block->scales[i] =
        static_cast<uint16_t>(block->scales[i] | (d >> (4 * i) & 15) << 12);
  }
}

template <class Block, bool one_shift>
void EncodeGridRow(const float* src, const float* importance, Block* blocks,
                   int64_t n) {
  using Format = BlockFormat<Block>;
  using Codebook = typename Format::Codebook;
  float weights[kSuperBlockSize];
  for (int64_t b = 0; b < n / kSuperBlockSize; ++b) {
    const float* x = src + kSuperBlockSize * b;
    FillWeights<kSuperBlockSize>(x, At(importance, kSuperBlockSize * b),
                                 weights);
    const GridSuperBlock fit =
        FitGridSuperBlock<Codebook, 32 / Format::kScalesPer32, one_shift>(
            x, weights);
    Block block;
    std::memset(&block, 0, sizeof(block));
    for (int g = 0; g < 8; ++g) {
      Grid32 grid;
      constexpr int codewords = 32 / Codebook::kRun;
      std::memcpy(grid.index, fit.index + codewords * g, 2 * codewords);
      grid.signs = fit.signs[g];
      grid.scale[0] = fit.scales[Format::kScalesPer32 * g];
      grid.scale[1] =
          fit.scales[Format::kScalesPer32 * g + Format::kScalesPer32 - 1];
      WriteGrid(grid, g, &block);
    }
    WriteFirstHalf(fit.d, &block);
    blocks[b] = block;
  }
}

#define WEFT_CODEBOOK_TYPE(TYPE, ONE_SHIFT)                            \
  inline void EncodeRow(const float* src, const float* importance,     \
                        Block##TYPE* blocks, int64_t n) {              \
    EncodeGridRow<Block##TYPE, ONE_SHIFT>(src, importance, blocks, n); \
  }
WEFT_CODEBOOK_TYPE(IQ2_XXS, false)
WEFT_CODEBOOK_TYPE(IQ2_XS, false)
WEFT_CODEBOOK_TYPE(IQ2_S, false)
WEFT_CODEBOOK_TYPE(IQ3_XXS, false)
WEFT_CODEBOOK_TYPE(IQ3_S, false)
WEFT_CODEBOOK_TYPE(IQ1_S, true)
WEFT_CODEBOOK_TYPE(IQ1_M, false)
#undef WEFT_CODEBOOK_TYPE

}  // namespace
}  // namespace quantize
}  // namespace weft
