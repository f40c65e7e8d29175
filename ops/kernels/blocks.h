// The block layouts of quantised GGUF tensors: the only copy.
//
// A row is a sequence of blocks; a block holds 32 or 256 consecutive elements.
// Field order and bit positions follow the block structures of the ggml library
// (MIT licence), which the GGUF specification refers to for its type ids
// (ggml-org/ggml docs/gguf.md). All fields are little-endian, without padding
// or alignment. Names: d and dmin are float16, the scale of the quants and of
// the minimums; `scales` are integers that d multiplies; qs holds the low bits
// of the quants and qh the high bits. How the fields make values is in
// decode_block.h.
//
// Plain data without functions, safe to include from files compiled for any
// instruction set. Little-endian hosts only.
#pragma once

#include <cstdint>

namespace weft {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "GGUF blocks are read in place: the host must be little-endian");

constexpr int kBlockSize = 32;        // elements in a block of the older types
constexpr int kSuperBlockSize = 256;  // elements in a block of the K types

#pragma pack(push, 1)

struct BlockQ4_0 {
  uint16_t d;
  uint8_t qs[16];  // low nibbles: elements 0-15, high nibbles: 16-31
};
struct BlockQ4_1 {
  uint16_t d;
  uint16_t m;
  uint8_t qs[16];
};
struct BlockQ5_0 {
  uint16_t d;
  uint8_t qh[4];  // bit i: fifth bit of element i
  uint8_t qs[16];
};
struct BlockQ5_1 {
  uint16_t d;
  uint16_t m;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockQ8_0 {
  uint16_t d;
  int8_t qs[32];
};
struct BlockQ2_K {
  uint8_t scales[16];  // per 16 elements: low nibble scale, high nibble minimum
  uint8_t qs[64];      // byte 32h+i, bits 2j: element 128h+32j+i
  uint16_t d;
  uint16_t dmin;
};
struct BlockQ3_K {
  uint8_t hmask[32];   // byte i, bit b: third bit of element 32b+i
  uint8_t qs[64];      // as in Q2_K
  uint8_t scales[12];  // 16 values of 6 bits
  uint16_t d;
};
struct BlockQ4_K {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];  // 8 scales and 8 minimums of 6 bits
  uint8_t qs[128];     // byte 32c+i: low nibble element 64c+i, high 64c+32+i
};
struct BlockQ5_K {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qh[32];  // byte i, bit b: fifth bit of element 32b+i
  uint8_t qs[128];
};
struct BlockQ6_K {
  uint8_t ql[128];    // byte 64h+i: low nibble element 128h+i, high 128h+64+i
  uint8_t qh[64];     // byte 32h+i, bits 2j: top bits of element 128h+32j+i
  int8_t scales[16];  // per 16 elements
  uint16_t d;
};
struct BlockIQ4_NL {
  uint16_t d;
  uint8_t qs[16];  // indices into kIQ4Codebook, ordered as in Q4_0
};
struct BlockIQ4_XS {
  uint16_t d;
  uint16_t scales_h;  // bits 2b: top bits of the scale of elements 32b..32b+31
  uint8_t scales_l[4];  // nibble b: low bits
  uint8_t qs[128];      // per 32 elements as in IQ4_NL
};

#pragma pack(pop)

static_assert(sizeof(BlockQ4_0) == 18, "");
static_assert(sizeof(BlockQ4_1) == 20, "");
static_assert(sizeof(BlockQ5_0) == 22, "");
static_assert(sizeof(BlockQ5_1) == 24, "");
static_assert(sizeof(BlockQ8_0) == 34, "");
static_assert(sizeof(BlockQ2_K) == 84, "");
static_assert(sizeof(BlockQ3_K) == 110, "");
static_assert(sizeof(BlockQ4_K) == 144, "");
static_assert(sizeof(BlockQ5_K) == 176, "");
static_assert(sizeof(BlockQ6_K) == 210, "");
static_assert(sizeof(BlockIQ4_NL) == 18, "");
static_assert(sizeof(BlockIQ4_XS) == 136, "");

// The 16 values an IQ4 index stands for: denser near zero, as weights are.
constexpr int8_t kIQ4Codebook[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace weft
