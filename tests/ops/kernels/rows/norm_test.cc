#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ops/kernels/quantized_rows.h"
#include "tests/ops/kernels/rows/row_kernels_here.h"

namespace weft {
namespace {

constexpr float kEpsilon = 1e-5f;

struct Case {
  int64_t rows, columns;
  float scale;
};

const Case kCases[] = {{1, 1, 1},       {3, 15, 1},      {2, 16, 1},
                       {7, 17, 10},     {5, 100, 1},     {13, 64, 1},
                       {4, 2048, 0.1f}, {2, 333, 1e15f}, {2, 96, 1e-20f}};

NormArgs Args(RandomMatrix& x, RandomMatrix& weight, RandomMatrix* bias,
              RandomMatrix& y) {
  return {In(x),         x.columns(),
          weight.data(), bias == nullptr ? nullptr : bias->data(),
          kEpsilon,      Out(y),
          nullptr,       x.rows()};
}

TEST(RmsNorm, IsNearDoublePrecision) {
  std::mt19937 random(1);
  for (const Case& c : kCases) {
    RandomMatrix x(c.rows, c.columns, random, 5, c.scale);
    RandomMatrix w(1, c.columns, random);
    for (const RowKernels* kernels : RowKernelsHere()) {
      RandomMatrix y(c.rows, c.columns, random, 2);
      kernels->rms_norm(Args(x, w, nullptr, y), 0, c.rows);
      for (int64_t r = 0; r < c.rows; ++r) {
        double sum = 0;
        for (int64_t i = 0; i < c.columns; ++i)
          sum += std::pow(x.at(r, i), 2.0);
        const double inverse = 1 / std::sqrt(sum / c.columns + kEpsilon);
        for (int64_t i = 0; i < c.columns; ++i) {
          const double want = x.at(r, i) * inverse * w.at(0, i);
          ASSERT_NEAR(y.at(r, i), want, 1e-6 * std::fabs(want) + 1e-30);
        }
      }
      EXPECT_TRUE(y.PaddingUntouched());
    }
  }
}

TEST(LayerNorm, IsNearDoublePrecision) {
  std::mt19937 random(2);
  for (const Case& c : kCases) {
    RandomMatrix x(c.rows, c.columns, random, 5, c.scale);
    RandomMatrix w(1, c.columns, random), b(1, c.columns, random);
    for (RandomMatrix* bias : {&b, static_cast<RandomMatrix*>(nullptr)}) {
      for (const RowKernels* kernels : RowKernelsHere()) {
        RandomMatrix y(c.rows, c.columns, random, 2);
        kernels->layer_norm(Args(x, w, bias, y), 0, c.rows);
        for (int64_t r = 0; r < c.rows; ++r) {
          double sum = 0, squares = 0;
          for (int64_t i = 0; i < c.columns; ++i) sum += x.at(r, i);
          const double mean = sum / c.columns;
          for (int64_t i = 0; i < c.columns; ++i) {
            squares += std::pow(x.at(r, i) - mean, 2.0);
          }
          const double inverse = 1 / std::sqrt(squares / c.columns + kEpsilon);
          for (int64_t i = 0; i < c.columns; ++i) {
            const double want = (x.at(r, i) - mean) * inverse * w.at(0, i) +
                                (bias == nullptr ? 0 : bias->at(0, i));
            ASSERT_NEAR(y.at(r, i), want, 3e-6 * (1 + std::fabs(want)));
          }
        }
        EXPECT_TRUE(y.PaddingUntouched());
      }
    }
  }
}

TEST(Norms, TakeEachHeadByItself) {
  std::mt19937 random(7);
  constexpr int64_t kRows = 3, kHeads = 5, kHead = 24;
  using Norm = void (*RowKernels::*)(const NormArgs&, int64_t, int64_t);
  for (Norm norm : {&RowKernels::rms_norm, &RowKernels::layer_norm}) {
    for (const int64_t step : {int64_t{0}, kHead}) {
      RandomMatrix x(kRows, kHeads * kHead, random, 2);
      RandomMatrix w(1, kHeads * kHead, random), b(1, kHeads * kHead, random);
      for (const RowKernels* kernels : RowKernelsHere()) {
        RandomMatrix y(kRows, kHeads * kHead, random, 2);
        NormArgs args = Args(x, w, &b, y);
        args.columns = kHead;
        args.heads = kHeads;
        args.weight_step = step;
        (kernels->*norm)(args, 0, kRows);
        EXPECT_TRUE(y.PaddingUntouched());
        RandomMatrix alone(1, kHead, random, 0);
        for (int64_t r = 0; r < kRows; ++r) {
          for (int64_t h = 0; h < kHeads; ++h) {
            NormArgs one = Args(x, w, &b, alone);
            one.x.data = &x.at(r, h * kHead);
            one.columns = kHead;
            one.weight += h * step;
            one.bias += h * step;
            (kernels->*norm)(one, 0, 1);
            for (int64_t i = 0; i < kHead; ++i) {
              ASSERT_EQ(y.at(r, h * kHead + i), alone.at(0, i));
            }
          }
        }
      }
    }
  }
}

TEST(Norms, GiveTheSameBitsOnEveryInstructionSetAndForEverySplit) {
  std::mt19937 random(3);
  using Norm = void (*RowKernels::*)(const NormArgs&, int64_t, int64_t);
  for (Norm norm : {&RowKernels::rms_norm, &RowKernels::layer_norm}) {
    for (const Case& c : kCases) {
      RandomMatrix x(c.rows, c.columns, random, 5, c.scale);
      RandomMatrix w(1, c.columns, random), b(1, c.columns, random);
      RandomMatrix first(c.rows, c.columns, random);
      const std::vector<const RowKernels*> tables = RowKernelsHere();
      if (tables.empty()) GTEST_SKIP();
      (tables[0]->*norm)(Args(x, w, &b, first), 0, c.rows);
      for (const RowKernels* kernels : tables) {
        RandomMatrix y(c.rows, c.columns, random);
        for (int64_t r = c.rows; r-- > 0;) {
          (kernels->*norm)(Args(x, w, &b, y), r, r + 1);
        }
        EXPECT_TRUE(y.SameBits(first));
      }
    }
  }
}

TEST(Norms, PassOnNanAndInfinity) {
  std::mt19937 random(4);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    RandomMatrix x(2, 40, random), w(1, 40, random), y(2, 40, random);
    x.at(0, 35) = bad;
    for (const RowKernels* kernels : RowKernelsHere()) {
      kernels->rms_norm(Args(x, w, nullptr, y), 0, 2);
      EXPECT_TRUE(std::isnan(y.at(0, 35)));
      EXPECT_TRUE(std::isfinite(y.at(1, 35)));
      kernels->layer_norm(Args(x, w, nullptr, y), 0, 2);
      EXPECT_TRUE(std::isnan(y.at(0, 3)));
      EXPECT_TRUE(std::isfinite(y.at(1, 3)));
    }
  }
}

std::vector<uint8_t> QuantizedBytes(int64_t rows, int64_t columns) {
  return std::vector<uint8_t>(
      static_cast<size_t>(rows * columns / 32 * kQuantizedRowsBlockBytes),
      0xee);
}

TEST(QuantizeRows, FollowsTheDefinition) {
  std::mt19937 random(5);
  for (int64_t rows = 1; rows <= 14; ++rows) {
    const int64_t columns = 32 * (1 + rows % 4);
    RandomMatrix x(rows, columns, random, 7, rows == 3 ? 1e30f : 1.0f);
    x.at(0, 0) = 0.0f;
    for (int64_t i = 0; i < 32; ++i) x.at(rows - 1, i) = 0.0f;
    for (const RowKernels* kernels : RowKernelsHere()) {
      std::vector<uint8_t> q = QuantizedBytes(rows, columns);
      for (int64_t r = rows; r-- > 0;) {
        kernels->quantize_rows({In(x), columns, rows, q.data()}, r, r + 1);
      }
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t b = 0; b < columns / 32; ++b) {
          const QuantizedBlock block =
              QuantizedBlockAt(q.data(), rows, columns, r, b);
          double largest = 0;
          for (int i = 0; i < 32; ++i) {
            largest = std::max<double>(largest, std::fabs(x.at(r, b * 32 + i)));
          }
          EXPECT_NEAR(*block.scale, largest / 127, largest * 1e-7);
          int sums[2] = {0, 0};
          for (int i = 0; i < 32; ++i) {
            EXPECT_NEAR(block.q[i] * *block.scale, x.at(r, b * 32 + i),
                        *block.scale * 0.50001);
            sums[i / 16] += block.q[i];
          }
          EXPECT_EQ(*block.sum_low, sums[0]);
          EXPECT_EQ(*block.sum_high, sums[1]);
          EXPECT_EQ(*block.scaled_sum, *block.scale * (sums[0] + sums[1]));
        }
      }
    }
  }
}

struct FusedNorm {
  void (*RowKernels::*norm)(const NormArgs&, int64_t, int64_t);
  void (*RowKernels::*quantized)(const NormArgs&, int64_t, int64_t);
  bool bias;
};
const FusedNorm kFusedNorms[] = {
    {&RowKernels::rms_norm, &RowKernels::rms_norm_quantize, false},
    {&RowKernels::layer_norm, &RowKernels::layer_norm_quantize, true},
    {&RowKernels::layer_norm, &RowKernels::layer_norm_quantize, false}};

TEST(NormQuantize, HasTheBitsOfNormThenQuantize) {
  std::mt19937 random(6);
  for (const FusedNorm& c : kFusedNorms) {
    for (const int64_t rows : {1, 6, 7, 20}) {
      const int64_t columns = 160;
      RandomMatrix x(rows, columns, random), w(1, columns, random);
      RandomMatrix b(1, columns, random);
      x.at(0, 5) = 1e-30f;
      x.at(rows / 2, 100) = rows == 7 ? NAN : 3.0f;
      std::vector<uint8_t> first;
      for (const RowKernels* kernels : RowKernelsHere()) {
        RandomMatrix y(rows, columns, random);
        std::vector<uint8_t> apart = QuantizedBytes(rows, columns);
        std::vector<uint8_t> fused = apart;
        NormArgs args = Args(x, w, c.bias ? &b : nullptr, y);
        (kernels->*c.norm)(args, 0, rows);
        kernels->quantize_rows({In(y), columns, rows, apart.data()}, 0, rows);
        args.quantized = fused.data();
        (kernels->*c.quantized)(args, 0, rows / 2);
        (kernels->*c.quantized)(args, rows / 2, rows);
        EXPECT_EQ(apart, fused);
        if (first.empty()) first = fused;
        EXPECT_EQ(first, fused);
      }
    }
  }
}

}  // namespace
}  // namespace weft
