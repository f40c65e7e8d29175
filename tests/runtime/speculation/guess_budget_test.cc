#include "runtime/speculation/guess_budget.h"

#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

// Steps that take `first`, and `more` for each row beyond.
StepCosts Costs(double first, double more) {
  StepCosts costs;
  for (int round = 0; round < 6; ++round) {
    for (int64_t rows = 1; rows <= 24; ++rows) {
      costs.Add(rows, first + more * static_cast<double>(rows - 1));
    }
  }
  return costs;
}

int64_t Taken(const StepCosts& costs, double probability, int64_t most) {
  std::vector<GuessOffer> offers = {{probability, most}};
  ShareGuesses(costs, 1, 1, most, 0, absl::MakeSpan(offers));
  return offers[0].taken;
}

TEST(StepCosts, AveragesAndGuessesBetween) {
  StepCosts costs;
  EXPECT_LT(costs.Of(8), 2 * costs.Of(1));
  costs.Add(1, 10);
  costs.Add(1, 1);  // the first was slow for another reason
  EXPECT_DOUBLE_EQ(costs.Of(1), 1);
  EXPECT_GT(costs.Of(9), 1);
  EXPECT_LT(costs.Of(9), 2);
  costs.Add(9, 3);
  EXPECT_DOUBLE_EQ(costs.Of(5), 2);
  for (int i = 0; i < 100; ++i) costs.Add(9, 5);
  EXPECT_NEAR(costs.Of(9), 5, 0.01);
  costs.Add(1000, 1);  // of which nothing is kept
  EXPECT_GT(costs.Of(1000), 5);
}

TEST(StepCosts, ForgetsWhatIsLongAgo) {
  StepCosts costs;
  costs.Add(1, 1);
  costs.Add(2, 100);
  EXPECT_DOUBLE_EQ(costs.Of(2), 100);
  for (int i = 0; i < StepCosts::kForgotten; ++i) costs.Add(1, 1);
  EXPECT_LT(costs.Of(2), 1.2);
}

TEST(GuessRecord, FollowsWhatComesTrue) {
  GuessRecord record;
  EXPECT_DOUBLE_EQ(record.Probability(1), 0.5);
  record.Add(1, false);
  EXPECT_DOUBLE_EQ(record.Probability(1), 0.25);
  record.Add(1, true);
  EXPECT_DOUBLE_EQ(record.Probability(1), 0.5);
  for (int i = 0; i < 50; ++i) {
    record.Add(0, true);
    record.Add(1, false);
  }
  EXPECT_GT(record.Probability(0), 0.95);
  EXPECT_LT(record.Probability(1), 0.05);
  EXPECT_DOUBLE_EQ(record.Probability(2), 0.75);
}

TEST(ShareGuesses, MoreWhereTheyComeTrueAndRowsAreCheap) {
  const StepCosts cheap = Costs(10, 0.5), dear = Costs(10, 9);
  EXPECT_EQ(Taken(cheap, 1, 15), 15);
  EXPECT_GT(Taken(cheap, 0.8, 15), 4);
  EXPECT_LT(Taken(cheap, 0.5, 15), 5);
  EXPECT_GT(Taken(cheap, 0.5, 15), 1);
  EXPECT_EQ(Taken(cheap, 0.02, 15), 0);
  EXPECT_EQ(Taken(dear, 0.8, 15), 0);
  EXPECT_EQ(Taken(cheap, 1, 0), 0);
}

TEST(ShareGuesses, OverAStepThatIsDearerThanTheNextOne) {
  StepCosts costs;
  for (int i = 0; i < 5; ++i) {
    costs.Add(1, 10);
    costs.Add(2, 19);
    costs.Add(3, 20);
    costs.Add(8, 20);
  }
  EXPECT_EQ(Taken(costs, 0.95, 7), 7);
}

TEST(ShareGuesses, AmongTextsByWhatIsLikely) {
  const StepCosts costs = Costs(10, 1);
  std::vector<GuessOffer> offers = {{0.9, 15}, {0.1, 15}, {0.95, 2}};
  ShareGuesses(costs, 3, 3, 6, 0, absl::MakeSpan(offers));
  EXPECT_GE(offers[0].taken, 2);
  EXPECT_EQ(offers[1].taken, 0);
  EXPECT_EQ(offers[2].taken, 2);
  EXPECT_LE(offers[0].taken + offers[2].taken, 6);
}

// Steps of many rows are bound by arithmetic, so a row costs as much as it
// gives.
TEST(ShareGuesses, FadesInLargeBatches) {
  StepCosts costs;
  for (int i = 0; i < 5; ++i) {
    for (int64_t rows = 1; rows <= 64; ++rows) {
      costs.Add(rows, rows < 8 ? 10 + 0.5 * rows : 14 + 3.0 * (rows - 8));
    }
  }
  for (const int64_t texts : {1, 4, 16, 32}) {
    std::vector<GuessOffer> offers(texts, {0.7, 8});
    ShareGuesses(costs, texts, static_cast<double>(texts), 15, 0,
                 absl::MakeSpan(offers));
    int64_t taken = 0;
    for (const GuessOffer& offer : offers) taken += offer.taken;
    if (texts == 1) {
      EXPECT_GT(taken, 1);
    }
    if (texts >= 16) {
      EXPECT_EQ(taken, 0) << texts;
    }
  }
}

TEST(ShareGuesses, TimeToGuessCounts) {
  const StepCosts costs = Costs(10, 0.5);
  std::vector<GuessOffer> offers = {{0.8, 15}};
  ShareGuesses(costs, 1, 1, 15, 2, absl::MakeSpan(offers));
  EXPECT_GT(offers[0].taken, 0);
  EXPECT_LT(offers[0].taken, Taken(costs, 0.8, 15));
  ShareGuesses(costs, 1, 1, 15, 9, absl::MakeSpan(offers));
  EXPECT_EQ(offers[0].taken, 0);
}

}  // namespace
}  // namespace weft
