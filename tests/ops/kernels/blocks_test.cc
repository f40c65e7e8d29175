#include "ops/kernels/blocks.h"

#include "graph/dtype.h"
#include "gtest/gtest.h"
#include "ops/kernels/decode_block.h"

namespace weft {
namespace {

template <class Block>
void ExpectSize(DType type) {
  EXPECT_EQ(static_cast<int>(sizeof(Block)), Info(type).block_bytes)
      << Info(type).name;
  EXPECT_EQ(BlockTraits<Block>::kElements, Info(type).block_elements)
      << Info(type).name;
  EXPECT_LE(BlockTraits<Block>::kMaxQuant - BlockTraits<Block>::kMinQuant, 255);
}

TEST(Blocks, AgreeWithTheTypeTable) {
  ExpectSize<BlockQ4_0>(DType::kQ4_0);
  ExpectSize<BlockQ4_1>(DType::kQ4_1);
  ExpectSize<BlockQ5_0>(DType::kQ5_0);
  ExpectSize<BlockQ5_1>(DType::kQ5_1);
  ExpectSize<BlockQ8_0>(DType::kQ8_0);
  ExpectSize<BlockQ2_K>(DType::kQ2_K);
  ExpectSize<BlockQ3_K>(DType::kQ3_K);
  ExpectSize<BlockQ4_K>(DType::kQ4_K);
  ExpectSize<BlockQ5_K>(DType::kQ5_K);
  ExpectSize<BlockQ6_K>(DType::kQ6_K);
  ExpectSize<BlockIQ4_NL>(DType::kIQ4_NL);
  ExpectSize<BlockIQ4_XS>(DType::kIQ4_XS);
}

TEST(Blocks, CodebookIsSortedSoThatNearestIsAScan) {
  for (int i = 1; i < 16; ++i) EXPECT_LT(kIQ4Codebook[i - 1], kIQ4Codebook[i]);
}

}  // namespace
}  // namespace weft
