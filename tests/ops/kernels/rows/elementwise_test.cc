#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <vector>

#include "tests/ops/kernels/rows/row_kernels_here.h"

namespace weft {
namespace {

double SiluOf(double x) { return x / (1 + std::exp(-x)); }
double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }
double GeluOf(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double GeluTanhOf(double x) {
  const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(u));
}

using UnaryKernel = void (*RowKernels::*)(const UnaryArgs&, int64_t, int64_t);
using BinaryKernel = void (*RowKernels::*)(const BinaryArgs&, int64_t, int64_t);

struct UnaryCase {
  UnaryKernel kernel;
  double (*want)(double);
};
// What the kernels with a parameter are given.
constexpr float kParameter = 1.5f;
double ScaleOf(double x) { return x * kParameter; }
double SoftcapOf(double x) { return kParameter * std::tanh(x / kParameter); }

const UnaryCase kUnary[] = {{&RowKernels::silu, SiluOf},
                            {&RowKernels::gelu, GeluOf},
                            {&RowKernels::gelu_tanh, GeluTanhOf}};

struct BinaryCase {
  BinaryKernel kernel;
  double (*want)(double, double);
};
const BinaryCase kBinary[] = {
    {&RowKernels::add, [](double a, double b) { return a + b; }},
    {&RowKernels::mul, [](double a, double b) { return a * b; }},
    {&RowKernels::silu_gate, [](double a, double b) { return SiluOf(a) * b; }},
    {&RowKernels::gelu_gate,
     [](double a, double b) { return GeluTanhOf(a) * b; }}};

TEST(Unary, IsNearDoublePrecision) {
  std::mt19937 random(1);
  std::vector<UnaryCase> cases(std::begin(kUnary), std::end(kUnary));
  cases.push_back({&RowKernels::sigmoid, SigmoidOf});
  for (const UnaryCase& c : cases) {
    for (const int64_t columns : {1, 16, 31, 200}) {
      RandomMatrix x(5, columns, random, 3, 4.0f);
      for (const RowKernels* kernels : RowKernelsHere()) {
        RandomMatrix y(5, columns, random, 1);
        (kernels->*c.kernel)({In(x), columns, Out(y)}, 0, 5);
        for (int64_t r = 0; r < 5; ++r) {
          for (int64_t i = 0; i < columns; ++i) {
            const double want = c.want(x.at(r, i));
            ASSERT_NEAR(y.at(r, i), want, 5e-7 * (0.1 + std::fabs(want)))
                << x.at(r, i);
          }
        }
        EXPECT_TRUE(y.PaddingUntouched());
      }
    }
  }
}

TEST(WeightedSum, AddsPartsInOrder) {
  std::mt19937 random(11);
  for (const int64_t parts : {1, 2, 5}) {
    for (const int64_t columns : {1, 16, 37}) {
      RandomMatrix x(3, parts * columns, random, 3);
      RandomMatrix weights(3, parts, random, 2);
      for (const RowKernels* kernels : RowKernelsHere()) {
        RandomMatrix y(3, columns, random, 1);
        kernels->weighted_sum({In(x), In(weights), parts, columns, Out(y)}, 0,
                              3);
        for (int64_t r = 0; r < 3; ++r) {
          for (int64_t i = 0; i < columns; ++i) {
            float want = x.at(r, i) * weights.at(r, 0);
            for (int64_t part = 1; part < parts; ++part) {
              want = std::fma(x.at(r, part * columns + i), weights.at(r, part),
                              want);
            }
            ASSERT_EQ(y.at(r, i), want);
          }
        }
        EXPECT_TRUE(y.PaddingUntouched());
      }
    }
  }
}

TEST(Unary, ScalesAndCapsByAParameter) {
  std::mt19937 random(7);
  const UnaryCase cases[] = {{&RowKernels::scale, ScaleOf},
                             {&RowKernels::softcap, SoftcapOf}};
  for (const UnaryCase& c : cases) {
    for (const float size : {1e-4f, 0.3f, 4.0f, 1e4f}) {
      RandomMatrix x(5, 37, random, 3, size);
      RandomMatrix first(5, 37, random, 0);
      for (const RowKernels* kernels : RowKernelsHere()) {
        RandomMatrix y(5, 37, random, 0);
        (kernels->*c.kernel)({In(x), 37, Out(y), kParameter}, 0, 5);
        for (int64_t r = 0; r < 5; ++r) {
          for (int64_t i = 0; i < 37; ++i) {
            const double want = c.want(x.at(r, i));
            // Small numbers keep their digits.
            ASSERT_NEAR(y.at(r, i), want, 4e-7 * std::fabs(want));
          }
        }
        if (kernels == RowKernelsHere().front()) first = y;
        EXPECT_TRUE(y.SameBits(first));
      }
    }
  }
}

TEST(Unary, HandlesExtremes) {
  std::mt19937 random(2);
  for (const UnaryCase& c : kUnary) {
    for (const RowKernels* kernels : RowKernelsHere()) {
      RandomMatrix x(1, 6, random);
      const float values[] = {NAN, INFINITY, 1e30f, -1e30f, 0.0f, 1e-40f};
      for (int i = 0; i < 6; ++i) x.at(0, i) = values[i];
      (kernels->*c.kernel)({In(x), 6, Out(x)}, 0, 1);
      EXPECT_TRUE(std::isnan(x.at(0, 0)));
      EXPECT_EQ(x.at(0, 1), INFINITY);
      EXPECT_EQ(x.at(0, 2), 1e30f);
      EXPECT_EQ(x.at(0, 3), 0.0f);
      EXPECT_EQ(x.at(0, 4), 0.0f);
      EXPECT_NEAR(x.at(0, 5), 5e-41, 1e-42);
    }
  }
}

TEST(Binary, AddsMultipliesAndGatesWholeMatricesAndRepeatedRows) {
  std::mt19937 random(3);
  for (const BinaryCase& c : kBinary) {
    for (const int64_t columns : {1, 15, 32, 77}) {
      for (const bool repeat : {false, true}) {
        RandomMatrix a(4, columns, random, 1, 3.0f);
        RandomMatrix b(repeat ? 1 : 4, columns, random);
        for (const RowKernels* kernels : RowKernelsHere()) {
          RandomMatrix y(4, columns, random);
          const ConstRows second = {b.data(), repeat ? 0 : b.row_bytes()};
          (kernels->*c.kernel)({In(a), second, columns, Out(y)}, 0, 4);
          for (int64_t r = 0; r < 4; ++r) {
            for (int64_t i = 0; i < columns; ++i) {
              const double want = c.want(a.at(r, i), b.at(repeat ? 0 : r, i));
              ASSERT_NEAR(y.at(r, i), want, 5e-7 * (0.1 + std::fabs(want)));
            }
          }
          EXPECT_TRUE(y.PaddingUntouched());
        }
      }
    }
  }
}

TEST(Elementwise, GivesTheSameBitsOnEveryInstructionSetSplitAndInPlace) {
  const std::vector<const RowKernels*> tables = RowKernelsHere();
  if (tables.empty()) GTEST_SKIP();
  std::mt19937 random(4);
  RandomMatrix x(9, 203, random, 0, 5.0f), b(9, 203, random, 0);
  x.at(1, 1) = -INFINITY;
  x.at(2, 2) = NAN;
  const UnaryKernel unary[] = {&RowKernels::silu, &RowKernels::gelu,
                               &RowKernels::gelu_tanh, &RowKernels::softmax};
  for (const UnaryKernel kernel : unary) {
    RandomMatrix first(9, 203, random, 0);
    (tables[0]->*kernel)({In(x), 203, Out(first)}, 0, 9);
    for (const RowKernels* kernels : tables) {
      RandomMatrix y = x;
      for (int64_t r = 9; r-- > 0;) {
        (kernels->*kernel)({In(y), 203, Out(y)}, r, r + 1);
      }
      EXPECT_TRUE(y.SameBits(first));
    }
  }
  for (const BinaryCase& c : kBinary) {
    RandomMatrix first(9, 203, random, 0);
    (tables[0]->*c.kernel)({In(x), In(b), 203, Out(first)}, 0, 9);
    for (const RowKernels* kernels : tables) {
      RandomMatrix y = x;
      for (int64_t r = 9; r-- > 0;) {
        (kernels->*c.kernel)({In(y), In(b), 203, Out(y)}, r, r + 1);
      }
      EXPECT_TRUE(y.SameBits(first));
    }
  }
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
        kernels->softmax({In(x), columns, Out(y)}, 0, 3);
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
    kernels->softmax({In(x), 50, Out(narrow)}, 0, 1);
    kernels->softmax({In(x), 90, Out(wide)}, 0, 1);
    EXPECT_EQ(0, std::memcmp(narrow.data(), wide.data(), 50 * 4));
  }
}

TEST(TakeRows, CopiesTheRowsAsked) {
  std::mt19937 random(7);
  RandomMatrix table(10, 13, random);
  const std::vector<int32_t> indices = {9, 0, 0, 4};
  for (const RowKernels* kernels : RowKernelsHere()) {
    RandomMatrix y(4, 13, random, 1);
    kernels->take_rows({reinterpret_cast<uint8_t*>(table.data()),
                        table.row_bytes(), indices.data(), 13 * 4,
                        reinterpret_cast<uint8_t*>(y.data()), y.row_bytes()},
                       0, 4);
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t i = 0; i < 13; ++i) {
        EXPECT_EQ(y.at(r, i), table.at(indices[static_cast<size_t>(r)], i));
      }
    }
    EXPECT_TRUE(y.PaddingUntouched());
  }
}

}  // namespace
}  // namespace weft
