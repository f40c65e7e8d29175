#include "ops/formats/formats.h"

#include <random>

#include "graph/dtype.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

template <class Block>
void ExpectConstants(DType type) {
  EXPECT_EQ(static_cast<int>(sizeof(Block)), Info(type).block_bytes)
      << Info(type).name;
  EXPECT_EQ(BlockFormat<Block>::kColumns, Info(type).block_elements)
      << Info(type).name;
  EXPECT_LE(BlockFormat<Block>::kMaxByte, 255) << Info(type).name;
  const int offset = BlockFormat<Block>::kOffset;
  EXPECT_EQ(offset & (offset - 1), 0) << Info(type).name;
}

TEST(Formats, AgreeWithTheTypeTable) {
#define WEFT_EXPECT(TYPE, ...) ExpectConstants<Block##TYPE>(DType::k##TYPE);
  WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_EXPECT)
#undef WEFT_EXPECT
}

// What kernels derive from the constants is what blocks decode to.
template <class Block>
void ExpectQuantsInRange(const char* name) {
  std::mt19937 random(7);
  Block block;
  for (int round = 0; round < 200; ++round) {
    uint8_t* bytes = reinterpret_cast<uint8_t*>(&block);
    for (size_t i = 0; i < sizeof(block); ++i) {
      bytes[i] = static_cast<uint8_t>(random());
    }
    for (int64_t b = 0; b < BlockFormat<Block>::kBlocks; ++b) {
      Decoded32 decoded;
      DecodeBlock(&block, b, &decoded);
      for (int8_t q : decoded.q) {
        const int byte = q + BlockFormat<Block>::kOffset;
        ASSERT_GE(byte, 0) << name;
        ASSERT_LE(byte, BlockFormat<Block>::kMaxByte) << name;
      }
      if (BlockFormat<Block>::kScalesPer32 == 1) {
        ASSERT_EQ(FloatBits(decoded.scale[0]), FloatBits(decoded.scale[1]));
      }
      if (!BlockFormat<Block>::kHasMin) {
        ASSERT_EQ(decoded.min[0], 0.0f) << name;
        ASSERT_EQ(decoded.min[1], 0.0f) << name;
      }
    }
  }
}

TEST(Formats, QuantsAreBytesThatKernelsMultiply) {
#define WEFT_EXPECT(TYPE, NAME, ...) ExpectQuantsInRange<Block##TYPE>(NAME);
  WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_EXPECT)
#undef WEFT_EXPECT
}

TEST(Formats, CodebookIsSortedSoThatNearestIsAScan) {
  for (int i = 1; i < 16; ++i) {
    EXPECT_LT(IQ4Levels::kValues[i - 1], IQ4Levels::kValues[i]);
  }
}

}  // namespace
}  // namespace weft
