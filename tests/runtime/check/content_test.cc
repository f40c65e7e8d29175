#include "runtime/check/content.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace weft {
namespace {

const ValueType kRows = {DType::kF32, Shape{Dim::Tokens(), Dim::Number(4)}, ""};
constexpr Bounds kStep = {2, 2, 64};

Content Floats(const std::vector<float>& x) {
  std::vector<uint8_t> bytes(x.size() * sizeof(float));
  std::memcpy(bytes.data(), x.data(), bytes.size());
  return Content(std::move(bytes));
}

TEST(Content, EqualBytesAreEqualAndOthersAreNot) {
  EXPECT_TRUE(Floats({1, 2}) == Floats({1, 2}));
  EXPECT_FALSE(Floats({1, 2}) == Floats({1, 3}));
  EXPECT_FALSE(Floats({0.0f}) == Floats({-0.0f}));
}

TEST(Compare, TellsTheLargestDifferenceOfARowAgainstItsSize) {
  const Content want = Floats({1, 1, 1, 1, 100, 100, 100, 100});
  const Difference d =
      Compare(kRows, kStep, Floats({1, 1, 1, 1, 100, 100, 101, 100}), want);
  EXPECT_NEAR(d.relative, 0.01, 1e-6);
  EXPECT_EQ(d.row, 1);
  EXPECT_EQ(d.column, 2);
  EXPECT_EQ(d.found, 101);
  EXPECT_EQ(d.want, 100);
  // The same in a row of small numbers is more.
  EXPECT_NEAR(
      Compare(kRows, kStep, Floats({1, 2, 1, 1, 100, 100, 100, 100}), want)
          .relative,
      1, 1e-6);
}

TEST(Compare, CountsRowsBeyondALimit) {
  const Content want = Floats({1, 1, 1, 1, 1, 1, 1, 1});
  const Content found = Floats({1, 1.2f, 1, 1, 1, 1, 1.1f, 1});
  EXPECT_EQ(Compare(kRows, kStep, found, want, 0.05).rows_beyond, 2);
  EXPECT_EQ(Compare(kRows, kStep, found, want, 0.15).rows_beyond, 1);
  EXPECT_EQ(Compare(kRows, kStep, found, want, 0.15).rows, 2);
}

TEST(Compare, WhatRoundingMovedIsForgivenInItsRow) {
  const Content want = Floats({1, 1, 1, 1, 1, 1, 1, 1});
  const Content found = Floats({1, 1.2f, 1, 1, 1, 1, 1.2f, 1});
  const std::vector<double> moved = {0.1, 0, 0, 0, 0, 0, 0, 0};
  const Difference d = Compare(kRows, kStep, found, want, 0.05, &moved);
  EXPECT_EQ(d.rows_beyond, 1);
  EXPECT_EQ(d.row, 1);
  EXPECT_NEAR(d.relative, 0.2, 1e-6);
  // A difference that is larger counts for what is beyond.
  EXPECT_NEAR(Compare(kRows, kStep, Floats({1, 1.5f, 1, 1, 1, 1, 1, 1}), want,
                      0.05, &moved)
                  .relative,
              0.2, 1e-6);
}

TEST(Compare, WhatIsNotFiniteOnOneSideIsInfinitelyFar) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Content want = Floats({1, 1, 1, -kInf, 1, 1, 1, NAN});
  EXPECT_EQ(Compare(kRows, kStep, Floats({1, 1, 1, -kInf, 1, 1, 1, -NAN}), want)
                .relative,
            0);
  EXPECT_TRUE(
      std::isinf(Compare(kRows, kStep, Floats({1, 1, 1, 0, 1, 1, 1, NAN}), want)
                     .relative));
  EXPECT_TRUE(std::isinf(
      Compare(kRows, kStep, Floats({1, 1, NAN, -kInf, 1, 1, 1, NAN}), want)
          .relative));
}

}  // namespace
}  // namespace weft
