// ops/formats says how a block gives codes, planes and halves, and by
// BlockFormat where they go; there is one text for each form of codes. Codes
// move four at a time, as 32-bit words: a code never leaves its byte when
// shifted.

#include "ops/kernels/matmul/pack.h"

#include <cstdlib>
#include <cstring>

#include "ops/formats/formats.h"
#include "ops/kernels/matmul/panel16.h"

namespace weft {
namespace {

constexpr int kLanes = 16;

// --- GGUF blocks ------------------------------------------------------------

// Codes are quants plus offset, unless the format reads them itself.
template <class Block>
void ReadCodes(const Block* row, int64_t b, uint8_t codes[32]) {
  static_assert(!BlockFormat<Block>::kHasLevels ||
                    BlockFormat<Block>::kForm != CodeForm::kBits,
                "the format needs a ReadCodes");
  Decoded32 decoded;
  DecodeBlock(row, b, &decoded);
  for (int i = 0; i < 32; ++i) {
    codes[i] = static_cast<uint8_t>(decoded.q[i] + BlockFormat<Block>::kOffset);
  }
}

// --- Words of four codes ----------------------------------------------------

uint32_t LoadWord(const uint8_t* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

void StoreWord(uint8_t* p, uint32_t word) {
  std::memcpy(p, &word, sizeof(word));
}

// The low `bits` of each of four bytes.
constexpr uint32_t WordMask(int bits) {
  return static_cast<uint32_t>((1 << bits) - 1) * 0x01010101u;
}

// Group g of one lane into / out of `bits` vectors of 64 bytes.
void PutGroup(uint8_t* vectors, int bits, int g, int lane, uint32_t word) {
  uint8_t* p = vectors + 64 * (g % bits) + 4 * lane;
  StoreWord(p, LoadWord(p) | word << (bits * (g / bits)));
}

uint32_t GetGroup(const uint8_t* vectors, int bits, int g, int lane) {
  const uint8_t* p = vectors + 64 * (g % bits) + 4 * lane;
  return (LoadWord(p) >> (bits * (g / bits))) & WordMask(bits);
}

// --- Codes of 32 columns ----------------------------------------------------

template <class Block>
void PutBits(const uint8_t codes[32], int lane, uint8_t* low) {
  using Panel = BlockFormat<Block>;
  uint8_t* high = low + 64 * Panel::kLowBits;
  for (int g = 0; g < 8; ++g) {
    const uint32_t word = LoadWord(codes + 4 * g);
    PutGroup(low, Panel::kLowBits, g, lane, word & WordMask(Panel::kLowBits));
    if (Panel::kHighBits > 0) {
      constexpr int bits = Panel::kHighBits > 0 ? Panel::kHighBits : 1;
      PutGroup(high, bits, g, lane, (word >> Panel::kLowBits) & WordMask(bits));
    }
  }
}

template <class Block>
void GetBits(const uint8_t* low, int lane, uint8_t codes[32]) {
  using Panel = BlockFormat<Block>;
  const uint8_t* high = low + 64 * Panel::kLowBits;
  for (int g = 0; g < 8; ++g) {
    uint32_t word = GetGroup(low, Panel::kLowBits, g, lane);
    if (Panel::kHighBits > 0) {
      constexpr int bits = Panel::kHighBits > 0 ? Panel::kHighBits : 1;
      word |= GetGroup(high, bits, g, lane) << (Panel::kLowBits % 8);
    }
    StoreWord(codes + 4 * g, word);
  }
}

// Bit g of byte k of a lane's word: sign of element 4g + k. Of seven signs the
// eighth is left out, and a number of four bits has its place.
constexpr uint32_t SignPlace(int element) {
  return 8 * (element % 4) + element / 4;
}

template <class Block>
void PutGrid(const Grid32& grid, int lane, uint8_t* quants) {
  using Panel = BlockFormat<Block>;
  using Codebook = typename Panel::Codebook;
  constexpr int indices = 32 / Codebook::kRun;
  for (int i = 0; i < indices; ++i) {
    quants[64 * (i / 4) + 4 * lane + i % 4] =
        static_cast<uint8_t>(grid.index[i]);
  }
  uint8_t* next = quants + 64 * Panel::kIndexVectors;
  if constexpr (Codebook::kHasSigns) {
    uint32_t signs = 0;
    for (int i = 0; i < 32; ++i) {
      uint32_t bit = grid.signs >> i & 1;
      if (Codebook::kSevenSigns && i % 8 == 7) {
        bit = Codebook::kIndexBits > 8 ? grid.index[i / 8] >> 8
                                       : grid.scale[0] >> (i / 8) & 1;
      }
      signs |= bit << SignPlace(i);
    }
    StoreWord(next + 4 * lane, signs);
    next += 64;
  }
  if constexpr (Codebook::kHighBytes == 1) {
    constexpr int bits = 8 / indices;
    int high = 0;
    for (int i = 0; i < indices; ++i) high |= grid.index[i] >> 8 << (bits * i);
    next[lane] = static_cast<uint8_t>(high);
  } else if constexpr (Codebook::kHighBytes == 2) {
    int high = 0;
    for (int i = 0; i < indices; ++i) {
      high |= grid.index[i] >> 8 << (Codebook::kHighStride * i);
      high |= static_cast<int>(grid.signs >> (8 * i) & 1)
              << Codebook::ShiftBit(i);
    }
    if (Panel::kScales == PanelScales::kOddInQuants) {
      high |= grid.scale[0] << 12;
    }
    next[2 * lane] = static_cast<uint8_t>(high);
    next[2 * lane + 1] = static_cast<uint8_t>(high >> 8);
  }
}

// scale: only where it stands among the quants.
template <class Block>
void GetGrid(const uint8_t* quants, int lane, Grid32* grid) {
  using Panel = BlockFormat<Block>;
  using Codebook = typename Panel::Codebook;
  constexpr int indices = 32 / Codebook::kRun;
  for (int i = 0; i < indices; ++i) {
    grid->index[i] = quants[64 * (i / 4) + 4 * lane + i % 4];
  }
  const uint8_t* next = quants + 64 * Panel::kIndexVectors;
  const auto add_high = [&](int i, int bits) {
    grid->index[i] = static_cast<uint16_t>(grid->index[i] | bits << 8);
  };
  int scale = 0;
  grid->signs = 0;
  if constexpr (Codebook::kHasSigns) {
    const uint32_t word = LoadWord(next + 4 * lane);
    for (int i = 0; i < 32; ++i) {
      grid->signs |= (word >> SignPlace(i) & 1) << i;
    }
    if constexpr (Codebook::kSevenSigns) {
      uint32_t even = 0;
      for (int run = 0; run < 4; ++run) {
        const int extra = grid->signs >> (8 * run + 7) & 1;
        if constexpr (Codebook::kIndexBits > 8) {
          add_high(run, extra);
        } else {
          scale |= extra << run;
        }
        even |= EightSigns(grid->signs >> (8 * run)) << (8 * run);
      }
      grid->signs = even;
    }
    next += 64;
  }
  if constexpr (Codebook::kHighBytes == 1) {
    constexpr int bits = 8 / indices;
    for (int i = 0; i < indices; ++i) {
      add_high(i, next[lane] >> (bits * i) & ((1 << bits) - 1));
    }
  } else if constexpr (Codebook::kHighBytes == 2) {
    const int high = next[2 * lane] | next[2 * lane + 1] << 8;
    for (int i = 0; i < indices; ++i) {
      add_high(i, high >> (Codebook::kHighStride * i) & 7);
      if ((high >> Codebook::ShiftBit(i) & 1) != 0) {
        grid->signs |= 0xffu << (8 * i);
      }
    }
    scale = high >> 12 & 7;
  }
  grid->scale[0] = static_cast<uint8_t>(scale);
}

// Bytes of a ternary super-block, in words of a lane: 13 vectors.
template <class Block>
void PutTernary(const Block& block, int lane, uint8_t* quants) {
  for (int m = 0; m < 52; ++m) {
    quants[64 * (m / 4) + 4 * lane + m % 4] = block.qs[m];
  }
}

// --- Panels -----------------------------------------------------------------

template <class Block>
void PackLane(const Block* row, int lane, int64_t depth, uint8_t* dst) {
  using Panel = BlockFormat<Block>;
  for (int64_t b = 0; b < depth / 32; ++b) {
    uint8_t* quants = dst + PanelQuants<Block>(b);
    if constexpr (Panel::kForm == CodeForm::kGrid) {
      Grid32 grid;
      ReadGrid(row[b / Panel::kBlocks], static_cast<int>(b % Panel::kBlocks),
               &grid);
      PutGrid<Block>(grid, lane, quants);
    } else if constexpr (Panel::kForm == CodeForm::kTernary) {
      if (b % Panel::kBlocks == 0) {
        PutTernary(row[b / Panel::kBlocks], lane, quants);
      }
    } else {
      uint8_t codes[32];
      ReadCodes(row, b, codes);
      PutBits<Block>(codes, lane, quants);
    }
  }
  for (int64_t s = 0; s < depth / Panel::kColumns; ++s) {
    const Block& block = row[s];
    uint8_t* meta = dst + PanelMeta<Block>(s, depth);
    if constexpr (Panel::kPlanes > 0) {
      for (int b = 0; b < Panel::kBlocks; ++b) {
        for (int p = 0; p < Panel::kPlanes; ++p) {
          meta[(b * Panel::kPlanes + p) * kLanes + lane] =
              ReadPlane(block, b, p);
        }
      }
    }
    uint8_t* halves = meta + Panel::kBlocks * Panel::kPlanes * kLanes;
    if constexpr (Panel::kHalves > 0) {
      const uint16_t d = FirstHalf(block);
      std::memcpy(halves + 2 * lane, &d, sizeof(d));
    }
    if constexpr (Panel::kHalves == 2) {
      const uint16_t second = SecondHalf(block);
      std::memcpy(halves + 32 + 2 * lane, &second, sizeof(second));
    }
  }
}

template <class Block>
void Pack(const uint8_t* const rows[16], int64_t depth, uint8_t* dst) {
  std::memset(dst, 0, static_cast<size_t>(PanelBytes<Block>(depth)));
  for (int lane = 0; lane < kLanes; ++lane) {
    if (rows[lane] == nullptr) continue;
    PackLane(reinterpret_cast<const Block*>(rows[lane]), lane, depth, dst);
  }
}

float LoadHalf(const uint8_t* p, int lane) {
  uint16_t half;
  std::memcpy(&half, p + 2 * lane, sizeof(half));
  return F16ToF32(half);
}

// Scale and minimum of columns 16h .. 16h+15 of a 32-column block. in_quants:
// the number that stands among the quants, where it does.
template <class Block>
void ReadScale(const uint8_t* planes, const uint8_t* halves, int in_quants,
               int lane, int h, float* scale, float* min) {
  using Panel = BlockFormat<Block>;
  const float d = Panel::kHalves > 0 ? LoadHalf(halves, lane) : 0.0f;
  const int p = Panel::kScalesPer32 == 2 ? h : 0;
  const auto plane = [&](int i) { return planes[i * kLanes + lane]; };
  *min = 0.0f;
  switch (Panel::kScales) {
    case PanelScales::kHalf:
      *scale = d;
      break;
    case PanelScales::kHalfMin:
      *scale = d;
      *min = -LoadHalf(halves + 32, lane);
      break;
    case PanelScales::kSubScale:
      *scale = d * static_cast<float>(static_cast<int8_t>(plane(p)));
      break;
    case PanelScales::kSubScaleMin:
      *scale = d * static_cast<float>(plane(0));
      *min = LoadHalf(halves + 32, lane) * static_cast<float>(plane(1));
      break;
    case PanelScales::kNibbleScaleMin:
      *scale = d * static_cast<float>(plane(p) & 15);
      *min = LoadHalf(halves + 32, lane) * static_cast<float>(plane(p) >> 4);
      break;
    case PanelScales::kPowerOfTwo:
      *scale = HalfPowerOfTwo(plane(p));
      break;
    case PanelScales::kSmallFloat:
      *scale = HalfSmallFloat(plane(p));
      break;
    case PanelScales::kOdd:
    case PanelScales::kOddInQuants:
      if constexpr (Panel::kForm == CodeForm::kGrid) {
        const int number = Panel::kScales == PanelScales::kOdd
                               ? plane(0) >> (4 * p) & 15
                               : in_quants;
        *scale =
            d * Panel::Codebook::kUnit * static_cast<float>(2 * number + 1);
      }
      break;
  }
}

template <class Block>
void Unpack(const uint8_t* packed, int64_t depth, int64_t row, float* dst) {
  using Panel = BlockFormat<Block>;
  const uint8_t* panel = packed + row / kLanes * PanelBytes<Block>(depth);
  const int lane = static_cast<int>(row % kLanes);
  for (int64_t b = 0; b < depth / 32; ++b, dst += 32) {
    const uint8_t* quants = panel + PanelQuants<Block>(b);
    uint8_t codes[32];
    int in_quants = 0;
    if constexpr (Panel::kForm == CodeForm::kGrid) {
      Grid32 grid;
      GetGrid<Block>(quants, lane, &grid);
      in_quants = grid.scale[0];
      CodesOfGrid<typename Panel::Codebook>(grid, codes);
    } else if constexpr (Panel::kForm == CodeForm::kTernary) {
      const uint8_t* bytes =
          panel + PanelQuants<Block>(b / Panel::kBlocks * Panel::kBlocks);
      for (int i = 0; i < 32; ++i) {
        const auto [byte, digit] =
            PlaceOfDigit(static_cast<int>(b % Panel::kBlocks), i);
        codes[i] = static_cast<uint8_t>(
            TernaryDigit(bytes[64 * (byte / 4) + 4 * lane + byte % 4], digit));
      }
    } else {
      GetBits<Block>(quants, lane, codes);
    }
    const uint8_t* meta = panel + PanelMeta<Block>(b / Panel::kBlocks, depth);
    const uint8_t* planes = meta + b % Panel::kBlocks * Panel::kPlanes * kLanes;
    const uint8_t* halves = meta + Panel::kBlocks * Panel::kPlanes * kLanes;
    for (int h = 0; h < 2; ++h) {
      float scale, min;
      ReadScale<Block>(planes, halves, in_quants, lane, h, &scale, &min);
      for (int i = 16 * h; i < 16 * h + 16; ++i) {
        const int q = Panel::kHasLevels ? Panel::kLevels[codes[i] & 15]
                                        : codes[i] - Panel::kOffset;
        dst[i] = scale * static_cast<float>(q) - min;
      }
    }
  }
}

// --- By type ----------------------------------------------------------------

struct Functions {
  int64_t (*panel_bytes)(int64_t);
  void (*pack)(const uint8_t* const[16], int64_t, uint8_t*);
  void (*unpack)(const uint8_t*, int64_t, int64_t, float*);
};

template <class Block>
constexpr Functions kFunctions = {.panel_bytes = PanelBytes<Block>,
                                  .pack = Pack<Block>,
                                  .unpack = Unpack<Block>};

// Every quantised type has its functions by the list of types; that there is no
// other is required.
const Functions& FunctionsOf(DType type) {
  const Functions* found = nullptr;
  switch (type) {
#define WEFT_CASE(TYPE, ...)          \
  case DType::k##TYPE:                \
    found = &kFunctions<Block##TYPE>; \
    break;
    WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_CASE)
#undef WEFT_CASE
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kI32:
    case DType::kQ8Rows:
      break;
  }
  if (found == nullptr) std::abort();
  return *found;
}

}  // namespace

int64_t PackedPanelBytes(DType type, int64_t depth) {
  return FunctionsOf(type).panel_bytes(depth);
}

int64_t PackedBytes(DType type, int64_t rows, int64_t depth) {
  return (rows + kLanes - 1) / kLanes * PackedPanelBytes(type, depth);
}

void PackPanel(DType type, const uint8_t* const rows[16], int64_t depth,
               uint8_t* dst) {
  FunctionsOf(type).pack(rows, depth, dst);
}

void UnpackRow(DType type, const uint8_t* packed, int64_t depth, int64_t row,
               float* dst) {
  FunctionsOf(type).unpack(packed, depth, row, dst);
}

}  // namespace weft
