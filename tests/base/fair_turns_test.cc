#include "base/fair_turns.h"

#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

// One who holds the only turn while others come, then goes.
class FairTurnsTest : public ::testing::Test {
 protected:
  void Come(uint64_t client) {
    const int64_t before = turns_.waiting();
    threads_.emplace_back([this, client] {
      const FairTurns::Turn turn(&turns_, client);
      order_.push_back(client);  // one at a time
    });
    while (turns_.waiting() == before) absl::SleepFor(absl::Milliseconds(1));
  }
  std::vector<uint64_t> OrderAfter(uint64_t first,
                                   const std::vector<uint64_t>& others) {
    {
      const FairTurns::Turn turn(&turns_, first);
      for (const uint64_t client : others) Come(client);
      EXPECT_TRUE(order_.empty());
    }
    for (std::thread& thread : threads_) thread.join();
    return order_;
  }

  FairTurns turns_{1};
  std::vector<std::thread> threads_;
  std::vector<uint64_t> order_;
};

TEST_F(FairTurnsTest, AClientWithManyWaitsForItself) {
  EXPECT_EQ(OrderAfter(1, {1, 1, 1, 2, 1, 3, 2}),
            (std::vector<uint64_t>{2, 3, 1, 2, 1, 1, 1}));
}

TEST_F(FairTurnsTest, EqualsGoInTheOrderInWhichTheyCame) {
  EXPECT_EQ(OrderAfter(9, {3, 1, 2}), (std::vector<uint64_t>{3, 1, 2}));
}

TEST(FairTurns, SeveralRunAtOnce) {
  FairTurns turns(2);
  const FairTurns::Turn a(&turns, 1), b(&turns, 1);
  EXPECT_EQ(turns.waiting(), 0);
}

}  // namespace
}  // namespace weft
