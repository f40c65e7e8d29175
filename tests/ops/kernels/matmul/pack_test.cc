#include "ops/kernels/matmul/pack.h"

#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ops/dequantize.h"
#include "tests/ops/kernels/matmul/quantized_case.h"

namespace weft {
namespace {

TEST(Pack, RoundTripsEveryTypeToTheBit) {
  std::mt19937 random(1);
  for (DType type : QuantizedTypes()) {
    for (int64_t depth :
         {Info(type).block_elements * 1, Info(type).block_elements * 3,
          Info(type).block_elements * 9}) {
      const int64_t rows = 37;
      const std::vector<uint8_t> weight =
          RandomWeight(type, rows, depth, random);
      AlignedBytes packed = PackRows(type, weight, rows, depth);
      std::vector<float> want(depth), got(depth);
      for (int64_t row = 0; row < rows; ++row) {
        DequantizeRow(type, weight.data() + row * RowBytes(type, depth),
                      want.data(), depth);
        UnpackRow(type, packed.data(), depth, row, got.data());
        ASSERT_EQ(0, std::memcmp(want.data(), got.data(), depth * 4))
            << Info(type).name << " depth " << depth << " row " << row;
      }
    }
  }
}

TEST(Pack, MissingRowsAreZero) {
  std::mt19937 random(2);
  for (DType type : QuantizedTypes()) {
    const int64_t depth = 256;
    const std::vector<uint8_t> weight = RandomWeight(type, 1, depth, random);
    const uint8_t* rows[16] = {};
    rows[3] = weight.data();
    AlignedBytes packed(PackedPanelBytes(type, depth));
    std::memset(packed.data(), 0xff, PackedPanelBytes(type, depth));
    PackPanel(type, rows, depth, packed.data());
    std::vector<float> got(depth);
    for (int64_t row = 0; row < 16; ++row) {
      if (row == 3) continue;
      UnpackRow(type, packed.data(), depth, row, got.data());
      for (float value : got) ASSERT_EQ(0.0f, value) << Info(type).name;
    }
  }
}

// Bytes of a packed weight against the file's, for a common size.
TEST(Pack, CostsLessThanFourPercent) {
  const int64_t rows = 5632, depth = 2048;
  for (DType type : QuantizedTypes()) {
    const double file = static_cast<double>(rows * RowBytes(type, depth));
    const double overhead =
        static_cast<double>(PackedBytes(type, rows, depth)) / file - 1.0;
    std::printf("%-7s %5.2f%%\n", Info(type).name, 100.0 * overhead);
    EXPECT_GE(overhead, 0.0) << Info(type).name;
    EXPECT_LT(overhead, 0.04) << Info(type).name;
  }
}

TEST(Pack, PanelsAreWholeCacheLines) {
  for (DType type : QuantizedTypes()) {
    const int64_t depth = 3 * Info(type).block_elements;
    EXPECT_EQ(0, PackedPanelBytes(type, depth) % 64) << Info(type).name;
    EXPECT_EQ(PackedBytes(type, 16, depth), PackedPanelBytes(type, depth));
    EXPECT_EQ(PackedBytes(type, 17, depth), 2 * PackedPanelBytes(type, depth));
  }
}

}  // namespace
}  // namespace weft
