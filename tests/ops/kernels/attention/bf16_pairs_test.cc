#include <gtest/gtest.h>

#include "ops/kernels/cpu.h"
#include "ops/kernels/half.h"
#include "tests/ops/kernels/attention/attention_problem.h"

namespace weft {
namespace {

#if defined(__x86_64__)

AttentionFunction Pairs() {
  return Find(kAttentionKernelsAvx512Bf16.fused, KvType::kBF16);
}

// Group sizes of one tile and several, tails of both dimensions, odd ones.
const AttentionShape kShapes[] = {
    {KvType::kBF16, 8, 1, 64, 64},   {KvType::kBF16, 4, 2, 64, 64},
    {KvType::kBF16, 14, 2, 128, 96}, {KvType::kBF16, 3, 3, 80, 80},
    {KvType::kBF16, 2, 2, 33, 47},   {KvType::kBF16, 70, 1, 16, 16},
    {KvType::kBF16, 5, 1, 24, 8},    {KvType::kBF16, 2, 1, 256, 128},
    {KvType::kBF16, 1, 1, 1, 1},
};

class AttentionBf16PairsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Includes(DetectIsa(), Isa::kAvx512Bf16)) {
      GTEST_SKIP() << "no AVX-512 BF16 here";
    }
  }
};

void RoundQueries(Problem* problem) {
  const int64_t n = problem->shape.heads * problem->shape.key_dim;
  for (int64_t r = 0; r < problem->rows(); ++r) {
    for (int64_t i = 0; i < n; ++i) {
      float& x = problem->q.at(r, i);
      x = BF16ToF32(F32ToBF16(x));
    }
  }
}

TEST_F(AttentionBf16PairsTest, IsNearDoublePrecisionOfRoundedQueries) {
  std::mt19937 random(1);
  for (const AttentionShape& shape : kShapes) {
    std::unique_ptr<Problem> problem = Mixed(shape, random);
    const RandomMatrix before = problem->Run(Pairs());
    RoundQueries(problem.get());
    // Rounding queries beforehand changes nothing.
    EXPECT_TRUE(problem->Run(Pairs()).SameBits(before));
    for (const AttentionVariant& variant : kAttentionVariants) {
      if (variant.temperature != 0) continue;  // changes what was rounded
      problem->variant = variant;
      RandomMatrix y = problem->Run(Pairs());
      // Half a unit of bfloat16 is 2^-8 of a weight at most.
      problem->ExpectNearReference(y, 1.0 / 256);
    }
  }
}

TEST_F(AttentionBf16PairsTest, IsNearDoublePrecisionForScoresOfAnySize) {
  std::mt19937 random(9);
  for (const AttentionShape& shape : kShapes) {
    for (const float size : kLargeQueries) {
      std::unique_ptr<Problem> problem = Mixed(shape, random, size);
      RoundQueries(problem.get());
      for (const AttentionVariant& variant : kAttentionVariants) {
        if (variant.temperature != 0) continue;
        problem->variant = variant;
        RandomMatrix y = problem->Run(Pairs());
        problem->ExpectNearReference(y, 1.0 / 256, kScoreUnits);
      }
    }
  }
}

TEST_F(AttentionBf16PairsTest, GivesTheSameBitsForEverySplit) {
  std::mt19937 random(2);
  for (const AttentionShape& shape : kShapes) {
    std::unique_ptr<Problem> problem = Mixed(shape, random);
    const RandomMatrix whole = problem->Run(Pairs());
    EXPECT_TRUE(problem->RunBackwards(Pairs()).SameBits(whole));
  }
}

TEST_F(AttentionBf16PairsTest, GivesTheSameBitsWhetherOrNotPiecesAreItems) {
  std::mt19937 random(4);
  const AttentionKernel& kernel = kAttentionKernelsAvx512Bf16.fused.lines[0];
  for (const AttentionShape& shape :
       {AttentionShape{KvType::kBF16, 4, 2, 64, 64},
        AttentionShape{KvType::kBF16, 2, 2, 33, 47}}) {
    Problem problem(shape, {2500}, {2499, 1023, 1024, 2047, 3}, {0, 0, 0, 0, 0},
                    random);
    for (const int64_t window : {0, 5, 1500}) {
      problem.variant.window = window;
      RandomMatrix y = problem.Run(kernel.run);
      EXPECT_TRUE(problem.RunInPieces(kernel).SameBits(y));
      for (int64_t row = 0; row < problem.rows(); ++row) {
        EXPECT_TRUE(problem.SameAlone(kernel.run, row, y));
      }
    }
  }
}

TEST_F(AttentionBf16PairsTest, GivesARowTheSameBitsAloneAndAmongOthers) {
  std::mt19937 random(3);
  for (const AttentionShape& shape : kShapes) {
    std::vector<int32_t> positions(140);
    std::iota(positions.begin(), positions.end(), 10);
    Problem problem(shape, {150}, positions, std::vector<int32_t>(140, 0),
                    random);
    for (const AttentionVariant& variant : kAttentionVariants) {
      problem.variant = variant;
      RandomMatrix together = problem.Run(Pairs());
      for (const int64_t row : {0, 1, 53, 54, 55, 100, 139}) {
        EXPECT_TRUE(problem.SameAlone(Pairs(), row, together)) << row;
      }
    }
  }
}

TEST_F(AttentionBf16PairsTest, NeverReadsWhatARowMayNotSee) {
  std::mt19937 random(4);
  // The first key of a pair and the second: the other one is seen by some.
  for (const int32_t bad : {70, 71}) {
    for (const float value : {INFINITY, NAN}) {
      Problem problem({KvType::kBF16, 2, 1, 32, 32}, {72},
                      {66, 67, 68, 69, 70, 71}, {0, 0, 0, 0, 0, 0}, random);
      problem.WriteEverywhere(bad, value);
      RandomMatrix y = problem.Run(Pairs());
      for (int64_t r = 0; r < 6; ++r) {
        for (int64_t i = 0; i < 64; ++i) {
          EXPECT_EQ(std::isfinite(y.at(r, i)),
                    problem.positions[static_cast<size_t>(r)] < bad)
              << "row " << r << ", bad " << bad;
        }
      }
    }
  }
}

TEST_F(AttentionBf16PairsTest, SurvivesScoresOfHundreds) {
  std::mt19937 random(5);
  Problem problem({KvType::kBF16, 2, 1, 64, 32}, {150}, {149, 10}, {0, 0},
                  random, 300.0f);
  RandomMatrix y = problem.Run(Pairs());
  for (int64_t i = 0; i < 64; ++i) EXPECT_TRUE(std::isfinite(y.at(0, i)));
}

#endif  // __x86_64__

}  // namespace
}  // namespace weft
