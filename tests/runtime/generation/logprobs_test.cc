#include "runtime/generation/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<TokenLogprob> Top(const std::vector<float>& logits, int64_t count) {
  std::vector<TokenLogprob> top;
  const auto softmax = LogSoftmax::Of(logits);
  EXPECT_TRUE(softmax.ok());
  softmax->Top(count, &top);
  return top;
}

TEST(LogSoftmaxTest, ProbabilitiesSumToOneAndTopIsASort) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits(1 + random() % 300);
    // Many alike, so that ties matter.
    for (float& logit : logits) logit = static_cast<float>(random() % 20) - 10;
    const auto softmax = LogSoftmax::Of(logits);
    ASSERT_TRUE(softmax.ok());
    double sum = 0;
    std::vector<int32_t> order;
    for (size_t id = 0; id < logits.size(); ++id) {
      order.push_back(static_cast<int32_t>(id));
      sum += std::exp(softmax->At(order.back()));
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return logits[a] > logits[b];
    });
    const int64_t count = random() % 30;
    const std::vector<TokenLogprob> top = Top(logits, count);
    ASSERT_EQ(top.size(), std::min<size_t>(count, logits.size()));
    for (size_t i = 0; i < top.size(); ++i) {
      ASSERT_EQ(top[i].token, order[i]);
      ASSERT_EQ(top[i].logprob, softmax->At(order[i]));
    }
  }
}

TEST(LogSoftmaxTest, InfinitiesAreCertainOrImpossible) {
  const std::vector<TokenLogprob> top = Top({1, kInfinity, -kInfinity}, 3);
  EXPECT_EQ(top[0].token, 1);
  EXPECT_EQ(top[0].logprob, 0);
  EXPECT_EQ(top[1].logprob, -HUGE_VAL);
  EXPECT_NEAR(Top({kInfinity, kInfinity}, 1)[0].logprob, std::log(0.5), 1e-15);
  // No overflow, and nothing lost, far from zero.
  EXPECT_NEAR(Top({1e30f, 1e30f}, 1)[0].logprob, std::log(0.5), 1e-15);
}

TEST(LogSoftmaxTest, RefusesNaNAndNothing) {
  EXPECT_FALSE(LogSoftmax::Of(std::vector<float>{1, std::nanf("")}).ok());
  EXPECT_FALSE(LogSoftmax::Of(std::vector<float>{-kInfinity}).ok());
  EXPECT_FALSE(LogSoftmax::Of({}).ok());
}

}  // namespace
}  // namespace weft
