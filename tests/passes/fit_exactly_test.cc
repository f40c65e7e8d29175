#include "passes/fit_exactly.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace weft {
namespace {

constexpr int64_t kEnough = int64_t{1} << 40;

int Uniform(std::mt19937* random, int low, int high) {
  return low + static_cast<int>((*random)() % (high - low + 1));
}

struct Puzzle {
  std::vector<Buffer> buffers;
  FreeSpace space;
};

// Sizes of few kinds, so that exact fits are many.
Puzzle RandomPuzzle(std::mt19937* random) {
  constexpr int kSteps = 6;
  Puzzle puzzle;
  for (int i = Uniform(random, 1, 6); i > 0; --i) {
    const int32_t first = Uniform(random, 0, kSteps - 1);
    const int32_t last =
        std::min<int32_t>(kSteps - 1, first + Uniform(random, 0, 3));
    puzzle.buffers.push_back({first, last, 64 * Uniform(random, 1, 5)});
  }
  const int64_t top = 64 * Uniform(random, 4, 14);
  for (int t = 0; t < kSteps; ++t) {
    puzzle.space.floor.push_back(64 * std::max(0, Uniform(random, -4, 2)));
    puzzle.space.ceiling.push_back(top -
                                   64 * std::max(0, Uniform(random, -4, 2)));
  }
  return puzzle;
}

// All orders, each buffer put down on what lies below it.
bool FitsByPermutation(const Puzzle& puzzle) {
  std::vector<int> order(puzzle.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    std::vector<int64_t> skyline = puzzle.space.floor;
    bool fits = true;
    for (const int index : order) {
      const Buffer& buffer = puzzle.buffers[index];
      const int64_t end = *std::max_element(skyline.begin() + buffer.first,
                                            skyline.begin() + buffer.last + 1) +
                          buffer.bytes;
      for (int32_t t = buffer.first; t <= buffer.last; ++t) {
        skyline[t] = end;
        fits &= end <= puzzle.space.ceiling[t];
      }
    }
    if (fits) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

bool IsSound(const Puzzle& puzzle, const std::vector<int64_t>& offsets) {
  if (offsets.size() != puzzle.buffers.size()) return false;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const Buffer& a = puzzle.buffers[i];
    for (int32_t t = a.first; t <= a.last; ++t) {
      if (offsets[i] < puzzle.space.floor[t] ||
          offsets[i] + a.bytes > puzzle.space.ceiling[t]) {
        return false;
      }
    }
    for (size_t j = 0; j < i; ++j) {
      const Buffer& b = puzzle.buffers[j];
      if (a.first <= b.last && b.first <= a.last &&
          offsets[i] < offsets[j] + b.bytes &&
          offsets[j] < offsets[i] + a.bytes) {
        return false;
      }
    }
  }
  return true;
}

TEST(FitExactly, FindsAPlacementJustWhereOneExists) {
  std::mt19937 random(1);
  int fitted = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    const Puzzle puzzle = RandomPuzzle(&random);
    int64_t work = kEnough;
    const auto offsets = FitExactly(puzzle.buffers, puzzle.space, &work);
    ASSERT_EQ(offsets.has_value(), FitsByPermutation(puzzle)) << round;
    ASSERT_LT(work, kEnough);
    if (!offsets.has_value()) continue;
    ASSERT_TRUE(IsSound(puzzle, *offsets)) << round;
    ++fitted;
  }
  EXPECT_GT(fitted, kRounds / 5);
  EXPECT_LT(fitted, kRounds * 4 / 5);
}

TEST(FitExactly, NothingFitsAnywhere) {
  int64_t work = kEnough;
  const auto offsets = FitExactly({}, {{64, 0}, {64, 128}}, &work);
  ASSERT_TRUE(offsets.has_value());
  EXPECT_TRUE(offsets->empty());
}

// The lowest place is not the right one for the small buffer.
TEST(FitExactly, LeavesRoomBelowForWhatComesLater) {
  const Puzzle puzzle = {
      {{0, 1, 64}, {0, 0, 128}, {1, 2, 128}},
      {{0, 0, 0}, {192, 192, 128}},
  };
  int64_t work = kEnough;
  const auto offsets = FitExactly(puzzle.buffers, puzzle.space, &work);
  ASSERT_TRUE(offsets.has_value());
  EXPECT_EQ(*offsets, (std::vector<int64_t>{128, 0, 0}));
}

TEST(FitExactly, StopsWhenItsWorkIsSpent) {
  std::vector<Buffer> buffers;
  for (int32_t i = 0; i < 40; ++i) {
    buffers.push_back({i % 7, i % 7 + i % 5, 64 * (1 + i * i % 11)});
  }
  const FreeSpace space = {std::vector<int64_t>(11, 0),
                           std::vector<int64_t>(11, 1 << 20)};
  int64_t little = 50;
  EXPECT_FALSE(FitExactly(buffers, space, &little).has_value());
  EXPECT_LE(little, 0);
  EXPECT_FALSE(FitExactly(buffers, space, &little).has_value());
  int64_t work = kEnough;
  EXPECT_TRUE(FitExactly(buffers, space, &work).has_value());
}

}  // namespace
}  // namespace weft
