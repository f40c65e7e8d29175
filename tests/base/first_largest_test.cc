#include "base/first_largest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(FirstLargest, EqualsMaxElementAlsoWhereValuesRepeat) {
  std::mt19937 random(1);
  for (int size : {1, 2, 15, 511, 512, 513, 1024, 3000}) {
    for (int distinct : {1, 3, 1000000}) {
      for (int round = 0; round < 20; ++round) {
        std::vector<float> values(size);
        for (float& value : values) {
          value = static_cast<float>(static_cast<int>(random() % distinct)) -
                  static_cast<float>(distinct);
        }
        ASSERT_EQ(
            std::max_element(values.begin(), values.end()) - values.begin(),
            FirstLargest(values))
            << size << " values, " << distinct << " distinct";
      }
    }
  }
}

TEST(FirstLargest, TakesInfinityAndPassesOverNan) {
  for (int size : {7, 512, 1300}) {
    std::vector<float> values(size, -kInfinity);
    EXPECT_EQ(0, FirstLargest(values));
    values[0] = std::nanf("");
    EXPECT_EQ(0, FirstLargest(values));
    values[size - 2] = -3;
    values[size - 1] = std::nanf("");
    EXPECT_EQ(size - 2, FirstLargest(values));
    values[size / 2] = kInfinity;
    EXPECT_EQ(size / 2, FirstLargest(values));
  }
  EXPECT_EQ(0, FirstLargest({}));
}

}  // namespace
}  // namespace weft
