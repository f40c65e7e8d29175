#include "passes/fit_by_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "passes/check_plan.h"

namespace weft {
namespace {

int Uniform(std::mt19937* random, int low, int high) {
  return low + static_cast<int>((*random)() % (high - low + 1));
}

absl::Status Check(const std::vector<Buffer>& buffers,
                   const std::vector<int64_t>& offsets, int64_t arena_bytes) {
  std::vector<Lifetime> lifetimes;
  for (const Buffer& b : buffers) {
    lifetimes.push_back({b.first, b.last, b.bytes});
  }
  return CheckPlan(lifetimes, offsets, arena_bytes);
}

int64_t LargestLiveSet(const std::vector<Buffer>& buffers) {
  int64_t largest = 0;
  for (const Buffer& one : buffers) {
    int64_t alive = 0;
    for (const Buffer& other : buffers) {
      if (other.first <= one.first && one.first <= other.last) {
        alive += other.bytes;
      }
    }
    largest = std::max(largest, alive);
  }
  return largest;
}

// A stream that each layer takes over into a new buffer, with `between` buffers
// of its own in each; layers are alike or not.
std::vector<Buffer> Layers(std::mt19937* random, int layers, int between,
                           bool alike) {
  constexpr int32_t kSteps = 8;
  const std::mt19937 start = *random;
  std::vector<Buffer> buffers;
  for (int layer = 0; layer < layers; ++layer) {
    if (alike) *random = start;
    const int32_t begin = layer * kSteps;
    buffers.push_back({begin, begin + kSteps, 64 * Uniform(random, 1, 4)});
    for (int i = 0; i < between; ++i) {
      const int32_t first = begin + Uniform(random, 1, kSteps - 1);
      const int32_t last =
          std::min(begin + kSteps - 1, first + Uniform(random, 0, 3));
      buffers.push_back({first, last, 64 * Uniform(random, 0, 8)});
    }
  }
  return buffers;
}

TEST(FitByParts, PlansAreSoundAndMostlyAtTheBound) {
  std::mt19937 random(1);
  int found = 0;
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    auto buffers = Layers(&random, Uniform(&random, 1, 12),
                          Uniform(&random, 0, 12), round % 2 == 0);
    if (round % 3 == 0) std::shuffle(buffers.begin(), buffers.end(), random);
    const int64_t bound = LargestLiveSet(buffers);
    const auto offsets = FitByParts(buffers, bound);
    if (offsets.has_value()) {
      ++found;
      ASSERT_TRUE(Check(buffers, *offsets, bound).ok())
          << Check(buffers, *offsets, bound);
    }
    EXPECT_FALSE(FitByParts(buffers, bound - 64).has_value());
  }
  EXPECT_GE(found, kRounds * 9 / 10);
}

// As any lives whatever, without a stream.
TEST(FitByParts, RandomLivesGiveSoundPlansOrNone) {
  std::mt19937 random(2);
  int found = 0;
  for (int round = 0; round < 1000; ++round) {
    std::vector<Buffer> buffers;
    for (int i = Uniform(&random, 1, 20); i > 0; --i) {
      const int32_t first = Uniform(&random, 0, 40);
      buffers.push_back(
          {first, first + Uniform(&random, 0, 6), 64 * Uniform(&random, 0, 9)});
    }
    const int64_t arena = LargestLiveSet(buffers);
    const auto offsets = FitByParts(buffers, arena);
    if (!offsets.has_value()) continue;
    ++found;
    ASSERT_TRUE(Check(buffers, *offsets, arena).ok())
        << Check(buffers, *offsets, arena);
  }
  EXPECT_GE(found, 500);
}

// In step 1 of each layer both streams and a buffer fill the arena: a stream
// goes to the end where the one before it does not lie.
TEST(FitByParts, StreamsTakeTheTwoEndsInTurn) {
  std::vector<Buffer> buffers;
  for (int32_t layer = 0; layer < 5; ++layer) {
    buffers.push_back({2 * layer, 2 * layer + 3, 128});
    buffers.push_back({2 * layer + 2, 2 * layer + 2, 192});
  }
  const auto offsets = FitByParts(buffers, 448);
  ASSERT_TRUE(offsets.has_value());
  ASSERT_TRUE(Check(buffers, *offsets, 448).ok());
  for (size_t i = 0; i + 2 < buffers.size(); i += 2) {
    EXPECT_EQ((*offsets)[i] + (*offsets)[i + 2], 448 - 128);
  }
}

// With the streams at both ends, the buffer that lives through steps 1 to 3
// would have to lie low for one large buffer and high for the other.
TEST(FitByParts, TwoStreamsNeverLieAtOneEnd) {
  const std::vector<Buffer> buffers = {{0, 2, 128}, {1, 3, 64},  {1, 1, 192},
                                       {2, 4, 128}, {3, 3, 192}, {4, 4, 64}};
  EXPECT_EQ(LargestLiveSet(buffers), 384);
  EXPECT_FALSE(FitByParts(buffers, 384).has_value());
  const auto offsets = FitByParts(buffers, 448);
  ASSERT_TRUE(offsets.has_value());
  EXPECT_TRUE(Check(buffers, *offsets, 448).ok());
}

TEST(FitByParts, ManyLayersAreFoundLikeFew) {
  std::mt19937 random(3);
  const auto buffers = Layers(&random, 400, 12, true);
  const int64_t bound = LargestLiveSet(buffers);
  const auto offsets = FitByParts(buffers, bound);
  ASSERT_TRUE(offsets.has_value());
  EXPECT_TRUE(Check(buffers, *offsets, bound).ok());
}

TEST(FitByParts, EmptyProgramsAndLastSteps) {
  ASSERT_TRUE(FitByParts({}, 0).has_value());
  const std::vector<Buffer> buffers = {
      {0, INT32_MAX, 64}, {INT32_MAX, INT32_MAX, 64}, {5, INT32_MAX - 1, 64}};
  const auto offsets = FitByParts(buffers, 128);
  ASSERT_TRUE(offsets.has_value());
  EXPECT_TRUE(Check(buffers, *offsets, 128).ok());
}

TEST(FitByParts, DoesNotBeginAPartOfVeryManyBuffers) {
  const std::vector<Buffer> few(60, Buffer{0, 1, 64});
  EXPECT_TRUE(FitByParts(few, 60 * 64).has_value());
  const std::vector<Buffer> many(20000, Buffer{0, 1, 64});
  EXPECT_FALSE(FitByParts(many, 20000 * 64).has_value());
}

}  // namespace
}  // namespace weft
