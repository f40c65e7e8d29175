#include "runtime/generation/step_budget.h"

#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

std::vector<int64_t> Shared(const std::vector<int64_t>& left, int64_t budget) {
  std::vector<int64_t> share(left.size(), -1);
  ShareBudget(left, budget, absl::MakeSpan(share));
  return share;
}

TEST(ShareBudgetTest, HalfForTheOldestTheRestForTheShortest) {
  using Numbers = std::vector<int64_t>;
  EXPECT_EQ(Shared({1000}, 64), Numbers({64}));
  EXPECT_EQ(Shared({1000, 20}, 64), Numbers({44, 20}));
  EXPECT_EQ(Shared({1000, 500, 100}, 64), Numbers({32, 0, 32}));
  EXPECT_EQ(Shared({1000, 10, 5}, 65), Numbers({50, 10, 5}));
  EXPECT_EQ(Shared({0, 1000, 0, 100}, 10), Numbers({0, 5, 0, 5}));
  EXPECT_EQ(Shared({1000, 100}, 1), Numbers({1, 0}));
  EXPECT_EQ(Shared({7, 8}, 100), Numbers({7, 8}));
  EXPECT_EQ(Shared({7, 8}, 0), Numbers({0, 0}));
  EXPECT_EQ(Shared({}, 10), Numbers());
}

TEST(ShareBudgetTest, GivesAllThatIsWantedOrAllThereIs) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int64_t> left(random() % 8);
    for (int64_t& n : left) n = random() % 3 == 0 ? 0 : random() % 200;
    const int64_t budget = random() % 300;
    const std::vector<int64_t> share = Shared(left, budget);
    int64_t wanted = 0;
    for (size_t i = 0; i < left.size(); ++i) {
      ASSERT_GE(share[i], 0);
      ASSERT_LE(share[i], left[i]);
      wanted += left[i];
    }
    ASSERT_EQ(std::accumulate(share.begin(), share.end(), int64_t{0}),
              std::min(wanted, budget));
  }
}

}  // namespace
}  // namespace weft
