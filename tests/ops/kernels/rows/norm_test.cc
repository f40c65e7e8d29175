// What tests/ops/kernels/every_kernel_test.cc leaves: numbers that are not
// finite, what quantised rows are, and that fused norms have the bits of their
// parts.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/kernels/quantized_rows.h"
#include "tests/ops/kernels/rows/row_kernels_here.h"

namespace weft {
namespace {

constexpr float kEpsilon = 1e-5f;

NormArgs Args(RandomMatrix& x, RandomMatrix& weight, RandomMatrix* bias,
              RandomMatrix& y) {
  return {In(x),         x.columns(),
          weight.data(), bias == nullptr ? nullptr : bias->data(),
          kEpsilon,      Out(y),
          nullptr,       x.rows()};
}

TEST(Norms, PassOnNanAndInfinity) {
  std::mt19937 random(4);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    RandomMatrix x(2, 40, random), w(1, 40, random), y(2, 40, random);
    x.at(0, 35) = bad;
    for (const RowKernels* kernels : RowKernelsHere()) {
      Find(kernels->norm, "rms_norm")(Args(x, w, nullptr, y), 0, 2);
      EXPECT_TRUE(std::isnan(y.at(0, 35)));
      EXPECT_TRUE(std::isfinite(y.at(1, 35)));
      Find(kernels->norm, "layer_norm")(Args(x, w, nullptr, y), 0, 2);
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
        Find(kernels->quantize, "quantize_rows")(
            {In(x), columns, rows, q.data()}, r, r + 1);
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
  const char* norm;
  const char* quantized;
  bool bias;
};
const FusedNorm kFusedNorms[] = {{"rms_norm", "rms_norm_quantize", false},
                                 {"layer_norm", "layer_norm_quantize", true},
                                 {"layer_norm", "layer_norm_quantize", false}};

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
        Find(kernels->norm, c.norm)(args, 0, rows);
        Find(kernels->quantize, "quantize_rows")(
            {In(y), columns, rows, apart.data()}, 0, rows);
        args.quantized = fused.data();
        Find(kernels->norm, c.quantized)(args, 0, rows / 2);
        Find(kernels->norm, c.quantized)(args, rows / 2, rows);
        EXPECT_EQ(apart, fused);
        if (first.empty()) first = fused;
        EXPECT_EQ(first, fused);
      }
    }
  }
}

}  // namespace
}  // namespace weft
