#include "runtime/generation/scheduler_stats.h"

#include <cmath>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(LatencyHistogramTest, EveryTimeIsInTheClassBelowItsBound) {
  LatencyHistogram times;
  EXPECT_EQ(times.Quantile(0.5), 0);
  for (const double seconds : {0.0, 0.0001, 0.000125, 0.0002, 0.3, 1e9}) {
    times.Add(seconds);
  }
  EXPECT_EQ(times.count(), 6);
  EXPECT_DOUBLE_EQ(times.sum(), 0.0 + 0.0001 + 0.000125 + 0.0002 + 0.3 + 1e9);
  EXPECT_EQ(times.in_class(0), 3);
  EXPECT_EQ(times.in_class(1), 1);
  EXPECT_EQ(times.in_class(LatencyHistogram::kClasses - 1), 1);
  EXPECT_DOUBLE_EQ(LatencyHistogram::UpperBound(0), 0.000125);
  EXPECT_DOUBLE_EQ(times.Quantile(0.5), 0.000125);
  EXPECT_DOUBLE_EQ(times.Quantile(0.6), 0.00025);
  EXPECT_GE(times.Quantile(0.8), 0.3);
  EXPECT_LT(times.Quantile(0.8), 0.6);
  EXPECT_EQ(times.Quantile(1), HUGE_VAL);
}

}  // namespace
}  // namespace weft
