// One text for all types: a Source says how a GGUF block gives codes, planes
// and halves; Panel16 says where they go. Codes move four at a time, as 32-bit
// words: a code never leaves its byte when shifted.

#include "ops/kernels/matmul/pack.h"

#include <cstring>

#include "ops/kernels/decode_block.h"
#include "ops/kernels/matmul/panel16.h"

namespace weft {
namespace {

constexpr int kLanes = 16;

// --- GGUF blocks ------------------------------------------------------------

// Codes are quants plus offset; IQ4 types store their codes as such.
template <class Block>
void ReadCodes(const Block* row, int64_t b, uint8_t codes[32]) {
  Decoded32 decoded;
  DecodeBlock(row, b, &decoded);
  for (int i = 0; i < 32; ++i) {
    codes[i] = static_cast<uint8_t>(decoded.q[i] + Panel16<Block>::kOffset);
  }
}

void ReadNibbles(const uint8_t* qs, uint8_t codes[32]) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = qs[i] & 15;
    codes[i + 16] = qs[i] >> 4;
  }
}

void ReadCodes(const BlockIQ4_NL* row, int64_t b, uint8_t codes[32]) {
  ReadNibbles(row[b].qs, codes);
}

void ReadCodes(const BlockIQ4_XS* row, int64_t b, uint8_t codes[32]) {
  ReadNibbles(row[b / 8].qs + 16 * (b % 8), codes);
}

// Byte of plane p, of 32-column block b of the super-block.
template <class Block>
uint8_t ReadPlane(const Block&, int, int) {
  return 0;
}

uint8_t ReadPlane(const BlockQ2_K& block, int b, int p) {
  return block.scales[2 * b + p];
}

uint8_t ReadPlane(const BlockQ3_K& block, int b, int p) {
  return static_cast<uint8_t>(ScaleOfQ3_K(block.scales, 2 * b + p));
}

uint8_t ReadPlane(const BlockQ4_K& block, int b, int p) {
  return static_cast<uint8_t>(p == 0 ? ScaleOfQ4_K(block.scales, b)
                                     : MinOfQ4_K(block.scales, b));
}

uint8_t ReadPlane(const BlockQ5_K& block, int b, int p) {
  return static_cast<uint8_t>(p == 0 ? ScaleOfQ4_K(block.scales, b)
                                     : MinOfQ4_K(block.scales, b));
}

uint8_t ReadPlane(const BlockQ6_K& block, int b, int p) {
  return static_cast<uint8_t>(block.scales[2 * b + p]);
}

uint8_t ReadPlane(const BlockIQ4_XS& block, int b, int) {
  return static_cast<uint8_t>(ScaleOfIQ4_XS(block, b));
}

template <class Block>
uint16_t ReadSecondHalf(const Block&) {
  return 0;
}
uint16_t ReadSecondHalf(const BlockQ4_1& block) { return block.m; }
uint16_t ReadSecondHalf(const BlockQ5_1& block) { return block.m; }
uint16_t ReadSecondHalf(const BlockQ2_K& block) { return block.dmin; }
uint16_t ReadSecondHalf(const BlockQ4_K& block) { return block.dmin; }
uint16_t ReadSecondHalf(const BlockQ5_K& block) { return block.dmin; }

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

// --- Panels -----------------------------------------------------------------

template <class Block>
void PackLane(const Block* row, int lane, int64_t depth, uint8_t* dst) {
  using Panel = Panel16<Block>;
  for (int64_t b = 0; b < depth / 32; ++b) {
    uint8_t codes[32];
    ReadCodes(row, b, codes);
    uint8_t* low = dst + PanelQuants<Block>(b);
    uint8_t* high = low + 64 * Panel::kLowBits;
    for (int g = 0; g < 8; ++g) {
      const uint32_t word = LoadWord(codes + 4 * g);
      PutGroup(low, Panel::kLowBits, g, lane, word & WordMask(Panel::kLowBits));
      if (Panel::kHighBits > 0) {
        constexpr int bits = Panel::kHighBits > 0 ? Panel::kHighBits : 1;
        PutGroup(high, bits, g, lane,
                 (word >> Panel::kLowBits) & WordMask(bits));
      }
    }
  }
  for (int64_t s = 0; s < depth / Panel::kColumns; ++s) {
    const Block& block = row[s];
    uint8_t* meta = dst + PanelMeta<Block>(s, depth);
    for (int b = 0; b < Panel::kBlocks; ++b) {
      for (int p = 0; p < Panel::kPlanes; ++p) {
        meta[(b * Panel::kPlanes + p) * kLanes + lane] = ReadPlane(block, b, p);
      }
    }
    uint8_t* halves = meta + Panel::kBlocks * Panel::kPlanes * kLanes;
    const uint16_t d = block.d, second = ReadSecondHalf(block);
    std::memcpy(halves + 2 * lane, &d, sizeof(d));
    if (Panel::kHalves == 2) {
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

// Scale and minimum of columns 16h .. 16h+15 of a 32-column block.
template <class Block>
void ReadScale(const uint8_t* planes, const uint8_t* halves, int lane, int h,
               float* scale, float* min) {
  using Panel = Panel16<Block>;
  const float d = LoadHalf(halves, lane);
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
  }
}

template <class Block>
void Unpack(const uint8_t* packed, int64_t depth, int64_t row, float* dst) {
  using Panel = Panel16<Block>;
  const uint8_t* panel = packed + row / kLanes * PanelBytes<Block>(depth);
  const int lane = static_cast<int>(row % kLanes);
  for (int64_t b = 0; b < depth / 32; ++b, dst += 32) {
    const uint8_t* low = panel + PanelQuants<Block>(b);
    const uint8_t* high = low + 64 * Panel::kLowBits;
    uint8_t codes[32];
    for (int g = 0; g < 8; ++g) {
      uint32_t word = GetGroup(low, Panel::kLowBits, g, lane);
      if (Panel::kHighBits > 0) {
        constexpr int bits = Panel::kHighBits > 0 ? Panel::kHighBits : 1;
        word |= GetGroup(high, bits, g, lane) << (Panel::kLowBits % 8);
      }
      StoreWord(codes + 4 * g, word);
    }
    const uint8_t* meta = panel + PanelMeta<Block>(b / Panel::kBlocks, depth);
    const uint8_t* planes = meta + b % Panel::kBlocks * Panel::kPlanes * kLanes;
    const uint8_t* halves = meta + Panel::kBlocks * Panel::kPlanes * kLanes;
    for (int h = 0; h < 2; ++h) {
      float scale, min;
      ReadScale<Block>(planes, halves, lane, h, &scale, &min);
      for (int i = 16 * h; i < 16 * h + 16; ++i) {
        const int q = Panel::kCodebook ? kIQ4Codebook[codes[i] & 15]
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
constexpr Functions kFunctions = {PanelBytes<Block>, Pack<Block>,
                                  Unpack<Block>};

const Functions& FunctionsOf(DType type) {
  switch (type) {
    case DType::kQ4_0:
      return kFunctions<BlockQ4_0>;
    case DType::kQ4_1:
      return kFunctions<BlockQ4_1>;
    case DType::kQ5_0:
      return kFunctions<BlockQ5_0>;
    case DType::kQ5_1:
      return kFunctions<BlockQ5_1>;
    case DType::kQ2_K:
      return kFunctions<BlockQ2_K>;
    case DType::kQ3_K:
      return kFunctions<BlockQ3_K>;
    case DType::kQ4_K:
      return kFunctions<BlockQ4_K>;
    case DType::kQ5_K:
      return kFunctions<BlockQ5_K>;
    case DType::kQ6_K:
      return kFunctions<BlockQ6_K>;
    case DType::kIQ4_NL:
      return kFunctions<BlockIQ4_NL>;
    case DType::kIQ4_XS:
      return kFunctions<BlockIQ4_XS>;
    default:
      return kFunctions<BlockQ8_0>;
  }
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
