#include "ops/kernels/attention/attention.h"

#include <gtest/gtest.h>

#include "ops/kernels/cpu.h"
#include "tests/ops/kernels/attention/attention_problem.h"

namespace weft {
namespace {

const AttentionShape kShapes[] = {
    {KvType::kF32, 4, 2, 64, 64},    {KvType::kF16, 8, 1, 64, 64},
    {KvType::kBF16, 3, 3, 80, 80},   {KvType::kQ8_0, 6, 2, 64, 96},
    {KvType::kF16, 2, 2, 20, 20},    {KvType::kF32, 7, 1, 8, 24},
    {KvType::kBF16, 5, 1, 24, 8},    {KvType::kF16, 2, 1, 256, 128},
    {KvType::kQ8_0, 1, 1, 32, 256},  {KvType::kF16, 70, 1, 16, 16},
    {KvType::kF16, 14, 2, 128, 128}, {KvType::kF32, 1, 1, 1, 1},
    {KvType::kBF16, 8, 1, 64, 64},   {KvType::kBF16, 2, 2, 33, 47},
    {KvType::kBF16, 14, 2, 128, 96}, {KvType::kBF16, 1, 1, 1, 1},
};

std::vector<const AttentionKernels*> KernelsHere() {
  std::vector<const AttentionKernels*> tables;
#if defined(__x86_64__)
  const Isa isa = DetectIsa();
  if (Includes(isa, Isa::kAvx2)) tables.push_back(&kAttentionKernelsAvx2);
  if (Includes(isa, Isa::kAvx512)) tables.push_back(&kAttentionKernelsAvx512);
#elif defined(__aarch64__)
  tables.push_back(&kAttentionKernelsNeon);
#endif
  return tables;
}

TEST(Attention, IsNearDoublePrecision) {
  std::mt19937 random(1);
  for (const AttentionShape& shape : kShapes) {
    for (const AttentionKernels* kernels : KernelsHere()) {
      std::unique_ptr<Problem> problem = Mixed(shape, random);
      for (const AttentionVariant& variant : kAttentionVariants) {
        problem->variant = variant;
        RandomMatrix y = problem->Run(Find(kernels->fused, shape.type));
        problem->ExpectNearReference(y);
      }
    }
  }
}

TEST(Attention, IsNearDoublePrecisionForScoresOfAnySize) {
  std::mt19937 random(2);
  for (const AttentionShape& shape : kShapes) {
    for (const float size : kLargeQueries) {
      std::unique_ptr<Problem> problem = Mixed(shape, random, size);
      for (const AttentionVariant& variant : kAttentionVariants) {
        problem->variant = variant;
        RandomMatrix first =
            problem->Run(Find(KernelsHere()[0]->fused, problem->shape.type));
        problem->ExpectNearReference(first, 4e-6, kScoreUnits);
        for (const AttentionKernels* kernels : KernelsHere()) {
          const RandomMatrix y =
              problem->Run(Find(kernels->fused, problem->shape.type));
          EXPECT_TRUE(y.SameBits(first));
        }
      }
    }
  }
}

// Products with scale * log2(e) overflow; the keys' order must not be lost.
TEST(Attention, TellsScoresNearTheLargestFloatApart) {
  std::mt19937 random(9);
  for (const AttentionKernels* kernels : KernelsHere()) {
    Problem problem({KvType::kF32, 1, 1, 1, 16}, {70}, {69}, {0}, random);
    for (int32_t i = 0; i < 70; ++i) {
      problem.WriteEverywhere(i, i == 3 ? 1.0f : -1.0f + i / 100.0f);
    }
    problem.q.at(0, 0) = 3.4e38f;
    RandomMatrix y = problem.Run(Find(kernels->fused, problem.shape.type));
    for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(y.at(0, i), 1.0f);
  }
}

TEST(Attention, GivesTheSameBitsOnEveryInstructionSetAndForEverySplit) {
  if (KernelsHere().empty()) GTEST_SKIP();
  std::mt19937 random(3);
  for (const AttentionShape& shape : kShapes) {
    std::unique_ptr<Problem> problem = Mixed(shape, random);
    const RandomMatrix first =
        problem->Run(Find(KernelsHere().front()->fused, shape.type));
    for (const AttentionKernels* kernels : KernelsHere()) {
      const RandomMatrix y =
          problem->RunBackwards(Find(kernels->fused, shape.type));
      EXPECT_TRUE(y.SameBits(first));
    }
  }
}

TEST(Attention, GivesARowTheSameBitsAloneAndAmongOthers) {
  std::mt19937 random(4);
  for (const AttentionShape& shape : kShapes) {
    for (const AttentionKernels* kernels : KernelsHere()) {
      std::vector<int32_t> positions(140);
      std::iota(positions.begin(), positions.end(), 10);
      Problem problem(shape, {150}, positions, std::vector<int32_t>(140, 0),
                      random);
      for (const AttentionVariant& variant : kAttentionVariants) {
        problem.variant = variant;
        RandomMatrix together =
            problem.Run(Find(kernels->fused, problem.shape.type));
        for (const int64_t row : {0, 53, 54, 100, 139}) {
          EXPECT_TRUE(problem.SameAlone(Find(kernels->fused, shape.type), row,
                                        together));
        }
      }
    }
  }
}

// Rows that look back on one to three pieces, and windows and chunks that begin
// within one.
TEST(Attention, GivesTheSameBitsWhetherOrNotPiecesAreItems) {
  const AttentionShape shapes[] = {{KvType::kF32, 3, 1, 24, 20},
                                   {KvType::kF16, 8, 2, 64, 64},
                                   {KvType::kBF16, 2, 2, 33, 47},
                                   {KvType::kQ8_0, 16, 1, 32, 32}};
  const AttentionVariant variants[] = {{0, 0, 0},
                                       {1, 0, 0},
                                       {1500, 0, 0},
                                       {64, 3.0f, 0},
                                       {0, 0, 0, 1, 0, 1100},
                                       {1030, 0, 0, 1, 0, 0, true},
                                       {0, 2.0f, 0, 1, 0, 0, true}};
  std::mt19937 random(10);
  for (const AttentionShape& shape : shapes) {
    Problem problem(shape, {2500, 1100, 5},
                    {2499, 2498, 1023, 1024, 2047, 2048, 1099, 1, 4},
                    {0, 0, 0, 0, 0, 0, 1, 1, 2}, random);
    for (const AttentionVariant& variant : variants) {
      problem.variant = variant;
      for (const AttentionKernels* kernels : KernelsHere()) {
        const auto kernel = std::find_if(
            kernels->fused.begin(), kernels->fused.end(),
            [&](const AttentionKernel& k) { return k.type == shape.type; });
        RandomMatrix y = problem.Run(kernel->run);
        problem.ExpectNearReference(y);
        EXPECT_TRUE(problem.RunInPieces(*kernel).SameBits(y));
        for (int64_t row = 0; row < problem.rows(); ++row) {
          EXPECT_TRUE(problem.SameAlone(kernel->run, row, y));
        }
      }
    }
  }
}

TEST(Attention, NeverReadsWhatARowMayNotSee) {
  std::mt19937 random(5);
  for (const AttentionKernels* kernels : KernelsHere()) {
    // Position 70 is an infinity: rows before it must not notice.
    Problem problem({KvType::kF32, 2, 1, 32, 32}, {71}, {66, 67, 68, 69, 70},
                    {0, 0, 0, 0, 0}, random);
    problem.WriteEverywhere(70, INFINITY);
    RandomMatrix y = problem.Run(Find(kernels->fused, problem.shape.type));
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t i = 0; i < 64; ++i) {
        EXPECT_TRUE(std::isfinite(y.at(r, i)));
      }
    }
    EXPECT_FALSE(std::isfinite(y.at(4, 0)));
  }
}

TEST(Attention, ReadsNoPageBeforeTheWindow) {
  std::mt19937 random(8);
  for (const AttentionKernels* kernels : KernelsHere()) {
    Problem problem({KvType::kF16, 2, 1, 32, 32}, {200}, {190, 191, 195, 199},
                    {0, 0, 0, 0}, random);
    problem.variant.window = 63;  // from 128 on
    RandomMatrix y = problem.Run(Find(kernels->fused, problem.shape.type));
    problem.ExpectNearReference(y);
    // Pages that nobody may look at lie nowhere.
    KvState keys = problem.keys.state(), values = problem.values.state();
    std::vector<int32_t> table(keys.page_table,
                               keys.page_table + keys.pages_per_sequence);
    table[0] = table[1] = 1 << 30;
    keys.page_table = values.page_table = table.data();
    RandomMatrix again = problem.Output();
    Scratch scratch(problem.shape, problem.context);
    AttentionArgs args = problem.Args(again, nullptr, 0);
    args.keys = &keys;
    args.values = &values;
    Find(kernels->fused, problem.shape.type)(args, 0, problem.Items(),
                                             scratch.data());
    EXPECT_TRUE(again.SameBits(y));
  }
}

TEST(AttentionPrimitives, AgreeWithTheFusedKernel) {
  std::mt19937 random(6);
  for (const AttentionShape& shape : kShapes) {
    for (const AttentionVariant& variant : kAttentionVariants) {
      const int64_t columns = variant.window == 7 ? 200 : 256;
      std::vector<float> first;
      for (const AttentionKernels* kernels : KernelsHere()) {
        std::mt19937 same(7);
        std::unique_ptr<Problem> problem = Mixed(shape, same);
        problem->variant = variant;
        RandomMatrix y = problem->Output();
        std::vector<float> scores(
            static_cast<size_t>(problem->rows() * shape.heads * columns), NAN);
        Scratch scratch(shape, problem->context);
        const AttentionArgs args = problem->Args(y, &scores, columns);
        const int64_t items = problem->Items();
        Find(kernels->scores, shape.type)(args, items / 2, items,
                                          scratch.data());
        Find(kernels->scores, shape.type)(args, 0, items / 2, scratch.data());
        for (int64_t r = 0; r < problem->rows(); ++r) {
          for (int64_t h = 0; h < shape.heads; ++h) {
            for (int64_t i = 0; i < columns; ++i) {
              const float got = scores[static_cast<size_t>(
                  (r * shape.heads + h) * columns + i)];
              if (i > problem->positions[static_cast<size_t>(r)] ||
                  i < problem->First(r)) {
                ASSERT_EQ(got, -INFINITY);
              } else {
                ASSERT_NEAR(got, problem->Score(r, h, i), 2e-5);
              }
            }
          }
        }
        UnaryArgs softmax = {{scores.data(), columns * 4},
                             columns,
                             {scores.data(), columns * 4}};
        softmax.sinks = args.sinks;
        softmax.heads = shape.heads;
        Find(RowKernelsHere().front()->softmax, "softmax")(
            softmax, 0, problem->rows() * shape.heads);
        Find(kernels->values, shape.type)(args, items / 2, items,
                                          scratch.data());
        Find(kernels->values, shape.type)(args, 0, items / 2, scratch.data());
        EXPECT_TRUE(scratch.Intact());
        problem->ExpectNearReference(y);
        std::vector<float> bits(y.data(), y.data() + shape.heads);
        if (first.empty()) first = bits;
        EXPECT_EQ(first, bits);
      }
    }
  }
}

}  // namespace
}  // namespace weft
