#include "ops/kernels/half.h"

#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(F16, EveryValueRoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const float wide = F16ToF32(half);
    if (std::isnan(wide)) {
      EXPECT_EQ(F32ToF16(wide), half | 0x200) << bits;
    } else {
      EXPECT_EQ(F32ToF16(wide), half) << bits;
    }
  }
}

TEST(F16, WidensByTheDefinition) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const int exponent = static_cast<int>(bits >> 10);
    const double fraction = static_cast<double>(bits & 0x3ff);
    const double expected = exponent == 0
                                ? std::ldexp(fraction, -24)
                                : std::ldexp(1024 + fraction, exponent - 25);
    EXPECT_EQ(F16ToF32(static_cast<uint16_t>(bits)), expected) << bits;
    EXPECT_EQ(F16ToF32(static_cast<uint16_t>(bits | 0x8000)), -expected);
  }
}

// Between any two neighbours: below the middle goes down, above goes up, the
// middle itself goes to the even one. The last pair is the largest value and
// infinity.
TEST(F16, NarrowsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float low = F16ToF32(static_cast<uint16_t>(bits));
    const float high = bits + 1 == 0x7c00
                           ? 65536.0f
                           : F16ToF32(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    const uint16_t even = static_cast<uint16_t>(bits + (bits & 1));
    EXPECT_EQ(F32ToF16(middle), even) << bits;
    EXPECT_EQ(F32ToF16(std::nextafter(middle, 0.0f)), bits) << bits;
    EXPECT_EQ(F32ToF16(std::nextafter(middle, 1e9f)), bits + 1) << bits;
    EXPECT_EQ(F32ToF16(-middle), even | 0x8000) << bits;
  }
}

TEST(F16, KeepsInfinityAndNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(F32ToF16(infinity), 0x7c00);
  EXPECT_EQ(F32ToF16(-infinity), 0xfc00);
  EXPECT_EQ(F32ToF16(3.4e38f), 0x7c00);
  EXPECT_EQ(F32ToF16(FloatFromBits(0xff800001)), 0xfe00);
  EXPECT_EQ(F32ToF16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(F32ToF16(-std::numeric_limits<float>::denorm_min()), 0x8000);
}

TEST(BF16, EveryValueRoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint16_t value = static_cast<uint16_t>(bits);
    const float wide = BF16ToF32(value);
    EXPECT_EQ(FloatBits(wide), bits << 16);
    EXPECT_EQ(F32ToBF16(wide), std::isnan(wide) ? value | 0x40 : value) << bits;
  }
}

TEST(BF16, NarrowsToNearestEven) {
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) {
    const uint32_t high = random() % 0x7f80;
    EXPECT_EQ(F32ToBF16(FloatFromBits((high << 16) | 0x8000)),
              high + (high & 1));
    EXPECT_EQ(F32ToBF16(FloatFromBits((high << 16) | 0x7fff)), high);
    EXPECT_EQ(F32ToBF16(FloatFromBits((high << 16) | 0x8001)), high + 1);
  }
  EXPECT_EQ(F32ToBF16(FloatFromBits(0x7f800001)), 0x7fc0);
}

}  // namespace
}  // namespace weft
