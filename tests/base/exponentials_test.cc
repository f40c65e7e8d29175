#include "base/exponentials.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace weft {
namespace {

double Exponential(double x) {
  Exponentials(absl::MakeSpan(&x, 1));
  return x;
}

TEST(ExponentialsTest, AreThoseOfTheCLibraryToTheLastPlaces) {
  std::mt19937 random(1);
  for (const double range : {1e-300, 1e-9, 0.1, 1.0, 30.0, 708.0}) {
    std::uniform_real_distribution<double> some(-range, 0);
    std::vector<double> x(4099);
    for (double& value : x) value = some(random);
    std::vector<double> result = x;
    Exponentials(absl::MakeSpan(result));
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = std::exp(x[i]);
      ASSERT_NEAR(result[i], want, 1e-15 * want) << x[i];
    }
  }
}

TEST(ExponentialsTest, ExtremesAreExact) {
  EXPECT_EQ(Exponential(0.0), 1.0);
  EXPECT_EQ(Exponential(-0.0), 1.0);
  EXPECT_EQ(Exponential(-std::numeric_limits<double>::denorm_min()), 1.0);
  EXPECT_GT(Exponential(-708.0), 0.0);
  EXPECT_EQ(Exponential(-708.1), 0.0);
  EXPECT_EQ(Exponential(-std::numeric_limits<double>::max()), 0.0);
  EXPECT_EQ(Exponential(-std::numeric_limits<double>::infinity()), 0.0);
}

TEST(ExponentialsTest, NeighboursChangeNothing) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> some(-40, 0);
  for (size_t size = 0; size < 40; ++size) {
    std::vector<double> x(size);
    for (double& value : x) value = some(random);
    std::vector<double> together = x;
    Exponentials(absl::MakeSpan(together));
    for (size_t i = 0; i < size; ++i) {
      ASSERT_EQ(together[i], Exponential(x[i])) << i << " of " << size;
    }
  }
}

}  // namespace
}  // namespace weft
