#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/kernels/rows/row_kernels_here.h"

namespace weft {
namespace {

struct Case {
  int64_t heads, head_dim, rope_dims;
  bool halves;
  double base, scale;
  bool factors;
};

const Case kCases[] = {
    {4, 64, 64, false, 10000, 1, false},  {4, 64, 64, true, 10000, 1, false},
    {3, 128, 128, true, 500000, 1, true}, {2, 80, 20, true, 10000, 0.25, false},
    {2, 20, 20, false, 10000, 1, true},   {5, 8, 6, false, 1000, 0.5, false},
    {1, 2, 2, true, 10000, 1, false},     {1, 512, 512, false, 1e6, 1, false},
};

const std::vector<int32_t> kPositions = {0, 1, 7, 4095, 131071, 1048575};

RopeArgs Args(const Case& c, RandomMatrix& x, RandomMatrix& y,
              RandomMatrix& factors) {
  return {In(x),
          c.heads,
          c.head_dim,
          c.rope_dims,
          c.halves,
          c.base,
          c.scale,
          c.factors ? factors.data() : nullptr,
          kPositions.data(),
          Out(y)};
}

RandomMatrix Factors(const Case& c, std::mt19937& random) {
  RandomMatrix factors(1, c.rope_dims / 2, random);
  for (int64_t i = 0; i < c.rope_dims / 2; ++i) {
    factors.at(0, i) = 1 + std::fabs(factors.at(0, i));
  }
  return factors;
}

TEST(Rope, IsNearDoublePrecisionUpToPosition2To20) {
  std::mt19937 random(1);
  for (const Case& c : kCases) {
    const int64_t rows = static_cast<int64_t>(kPositions.size());
    RandomMatrix x(rows, c.heads * c.head_dim, random);
    RandomMatrix factors = Factors(c, random);
    for (const RowKernels* kernels : RowKernelsHere()) {
      RandomMatrix y(rows, c.heads * c.head_dim, random, 1);
      Find(kernels->rope, "rope")(Args(c, x, y, factors), 0, rows);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t h = 0; h < c.heads; ++h) {
          const int64_t offset = h * c.head_dim;
          for (int64_t i = 0; i < c.rope_dims / 2; ++i) {
            const bool halves = c.halves;
            const int64_t a = offset + (halves ? i : 2 * i);
            const int64_t b = halves ? a + c.rope_dims / 2 : a + 1;
            const double angle = kPositions[static_cast<size_t>(r)] * c.scale *
                                 std::pow(c.base, -2.0 * i / c.rope_dims) /
                                 (c.factors ? factors.at(0, i) : 1.0);
            const double s = std::sin(angle), t = std::cos(angle);
            ASSERT_NEAR(y.at(r, a), x.at(r, a) * t - x.at(r, b) * s, 1e-6);
            ASSERT_NEAR(y.at(r, b), x.at(r, b) * t + x.at(r, a) * s, 1e-6);
          }
          for (int64_t i = c.rope_dims; i < c.head_dim; ++i) {
            ASSERT_EQ(y.at(r, offset + i), x.at(r, offset + i));
          }
        }
      }
      EXPECT_TRUE(y.PaddingUntouched());
    }
  }
}

// YaRN: pairs before the ramp as without a scale, those behind it as with one,
// and in between a mixture; everything longer by the magnitude.
TEST(Rope, MixesScalesAlongARampAndMultipliesByTheMagnitude) {
  std::mt19937 random(3);
  constexpr int64_t kDims = 40;
  RandomMatrix x(2, kDims, random);
  const std::vector<int32_t> positions = {3, 1000};
  for (const RowKernels* kernels : RowKernelsHere()) {
    RandomMatrix y(2, kDims, random, 1);
    RopeArgs args = {
        In(x), 1, kDims, kDims, true, 1e4, 0.25, nullptr, positions.data(),
        Out(y)};
    args.ramp_begin = 5;
    args.ramp_end = 13;
    args.magnitude = 1.5f;
    Find(kernels->rope, "rope")(args, 0, 2);
    for (int64_t r = 0; r < 2; ++r) {
      for (int64_t i = 0; i < kDims / 2; ++i) {
        const double mixed = i <= 5    ? 1
                             : i >= 13 ? 0.25
                                       : 1 - 0.75 * (i - 5) / 8;
        const double angle = positions[static_cast<size_t>(r)] * mixed *
                             std::pow(1e4, -2.0 * i / kDims);
        const double a = x.at(r, i), b = x.at(r, i + kDims / 2);
        ASSERT_NEAR(y.at(r, i),
                    1.5 * (a * std::cos(angle) - b * std::sin(angle)), 2e-6);
        ASSERT_NEAR(y.at(r, i + kDims / 2),
                    1.5 * (b * std::cos(angle) + a * std::sin(angle)), 2e-6);
      }
    }
    EXPECT_TRUE(y.PaddingUntouched());
  }
}

}  // namespace
}  // namespace weft
