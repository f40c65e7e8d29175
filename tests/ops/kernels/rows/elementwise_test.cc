// What tests/ops/kernels/every_kernel_test.cc leaves: numbers that are not
// finite, and masked entries.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/kernels/rows/row_kernels_here.h"

namespace weft {
namespace {

template <class Line>
void ExpectExtremes(const KernelList<Line>& lines, absl::string_view op) {
  std::mt19937 random(2);
  for (const Line& kernel : lines) {
    if (op != kernel.op) continue;
    RandomMatrix x(1, 6, random);
    const float values[] = {NAN, INFINITY, 1e30f, -1e30f, 0.0f, 1e-40f};
    for (int i = 0; i < 6; ++i) x.at(0, i) = values[i];
    kernel.run({In(x), 6, Out(x)}, 0, 1);
    EXPECT_TRUE(std::isnan(x.at(0, 0)));
    EXPECT_EQ(x.at(0, 1), INFINITY);
    EXPECT_EQ(x.at(0, 2), 1e30f);
    EXPECT_EQ(x.at(0, 3), 0.0f);
    EXPECT_EQ(x.at(0, 4), 0.0f);
    EXPECT_NEAR(x.at(0, 5), 5e-41, 1e-42);
  }
}

TEST(Unary, HandlesExtremes) {
  for (const RowKernels* kernels : RowKernelsHere()) {
    ExpectExtremes(kernels->unary, "silu");
    ExpectExtremes(kernels->gelu, "gelu");
  }
}

template <class Line, class RunOne>
void ExpectSameBits(KernelList<Line> RowKernels::*list, RunOne run) {
  const std::vector<const RowKernels*> tables = RowKernelsHere();
  if (tables.empty()) GTEST_SKIP();
  std::mt19937 random(4);
  RandomMatrix x(9, 203, random, 0, 5.0f), b(9, 203, random, 0);
  x.at(1, 1) = -INFINITY;
  x.at(2, 2) = NAN;
  for (int i = 0; i < (tables[0]->*list).count; ++i) {
    RandomMatrix first = x;
    for (const RowKernels* kernels : tables) {
      RandomMatrix y = x;
      run((kernels->*list).lines[i], y, b);
      if (kernels == tables[0]) first = y;
      EXPECT_TRUE(y.SameBits(first)) << (kernels->*list).lines[i].op;
    }
  }
}

TEST(Elementwise, GivesInfinityAndNanTheSameBitsOnEveryInstructionSet) {
  const auto unary = [](const auto& kernel, RandomMatrix& y, RandomMatrix&) {
    kernel.run({In(y), 203, Out(y), 1.5f}, 0, 9);
  };
  ExpectSameBits(&RowKernels::unary, unary);
  ExpectSameBits(&RowKernels::gelu, unary);
  ExpectSameBits(&RowKernels::softmax, unary);
  ExpectSameBits(&RowKernels::binary,
                 [](const auto& kernel, RandomMatrix& y, RandomMatrix& b) {
                   kernel.run({In(y), In(b), 203, Out(y)}, 0, 9);
                 });
}

TEST(Softmax, IsNearDoublePrecisionAndLeavesMaskedEntriesZero) {
  std::mt19937 random(5);
  for (const int64_t columns : {1, 16, 17, 100, 1000}) {
    for (const float scale : {1.0f, 30.0f, 1e4f}) {
      RandomMatrix x(3, columns, random, 3, scale);
      for (int64_t i = columns / 2 + 1; i < columns; ++i)
        x.at(1, i) = -INFINITY;
      for (const RowKernels* kernels : RowKernelsHere()) {
        RandomMatrix y(3, columns, random);
        Find(kernels->softmax, "softmax")({In(x), columns, Out(y)}, 0, 3);
        for (int64_t r = 0; r < 3; ++r) {
          double largest = -INFINITY, sum = 0;
          for (int64_t i = 0; i < columns; ++i) {
            largest = std::max<double>(largest, x.at(r, i));
          }
          for (int64_t i = 0; i < columns; ++i) {
            sum += std::exp(x.at(r, i) - largest);
          }
          for (int64_t i = 0; i < columns; ++i) {
            const double want = std::exp(x.at(r, i) - largest) / sum;
            if (want == 0) {
              ASSERT_LE(y.at(r, i), 1e-38f);
            } else {
              // x - max is rounded to a float before the exponential.
              const double argument = largest - x.at(r, i);
              ASSERT_NEAR(y.at(r, i), want,
                          (1e-6 + argument * 6e-8) * want + 2e-38);
            }
            if (std::isinf(x.at(r, i))) {
              ASSERT_EQ(y.at(r, i), 0.0f);
            }
          }
        }
        EXPECT_TRUE(y.PaddingUntouched());
      }
    }
  }
}

TEST(Softmax, DoesNotDependOnMaskedColumnsBehind) {
  std::mt19937 random(6);
  RandomMatrix x(1, 90, random, 0);
  for (const RowKernels* kernels : RowKernelsHere()) {
    RandomMatrix narrow(1, 50, random, 0), wide(1, 90, random, 0);
    for (int64_t i = 50; i < 90; ++i) x.at(0, i) = -INFINITY;
    Find(kernels->softmax, "softmax")({In(x), 50, Out(narrow)}, 0, 1);
    Find(kernels->softmax, "softmax")({In(x), 90, Out(wide)}, 0, 1);
    EXPECT_EQ(0, std::memcmp(narrow.data(), wide.data(), 50 * 4));
  }
}

}  // namespace
}  // namespace weft
