#include "ops/kernels/matmul/bf16_matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "ops/kernels/half.h"
#include "ops/kernels/matmul/bf16_isa.h"
#include "ops/kernels/matmul/bf16_layout.h"
#include "ops/kernels/matmul/onednn_tile.h"
#include "tests/ops/kernels/random_matrix.h"

namespace weft {
namespace {

struct AlignedBytes {
  explicit AlignedBytes(int64_t bytes)
      : data(static_cast<uint8_t*>(std::aligned_alloc(
            64, static_cast<size_t>(bytes + 64) / 64 * 64))) {}
  ~AlignedBytes() { std::free(data); }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  uint8_t* data;
};

bool HasBf16() { return Includes(DetectIsa(), Isa::kAvx512Bf16); }

// Runs whole, or in two parts as two threads would.
void RunKernel(const MatmulKernel& kernel, const MatmulArgs& args, bool cut) {
  AlignedBytes scratch(kernel.ThreadScratchBytes(args.depth));
  const int64_t panels = (args.weight_rows + 15) / 16;
  const int64_t middle = cut ? panels / 2 / 4 * 4 : 0;
  if (middle > 0) kernel.run(args, 0, middle, scratch.data);
  kernel.run(args, middle, panels, scratch.data);
}

// The epilogues with floats as output.
constexpr MatmulEpilogue kEpilogues[] = {
    MatmulEpilogue::kStore, MatmulEpilogue::kResidual, MatmulEpilogue::kGate};

MatmulArgs Args(RandomMatrix& x, const uint8_t* weight, int64_t weight_rows,
                RandomMatrix& bias, RandomMatrix& residual, RandomMatrix& y,
                MatmulEpilogue epilogue) {
  MatmulArgs args = {};
  args.x = x.data();
  args.x_row_bytes = x.row_bytes();
  args.rows = x.rows();
  args.depth = x.columns();
  args.weight = weight;
  args.weight_rows = weight_rows;
  args.bias = bias.data();
  args.epilogue = epilogue;
  args.y = y.data();
  args.y_row_bytes = y.row_bytes();
  args.residual = residual.data();
  args.residual_row_bytes = residual.row_bytes();
  return args;
}

// A weight in the file's type and as bfloat16, with rows of x.
struct Bf16Case {
  Bf16Case(DType type, int64_t n, int64_t depth, std::mt19937& random)
      : file(static_cast<size_t>(n * depth)),
        rounded(file.size()),
        packed(Bf16LayoutBytes(type, n, depth)) {
    RandomMatrix w(n, depth, random, 0);
    for (size_t i = 0; i < file.size(); ++i) {
      const float value = w.data()[i];
      file[i] = type == DType::kF16 ? F32ToF16(value) : F32ToBF16(value);
      const float stored =
          type == DType::kF16 ? F16ToF32(file[i]) : BF16ToF32(file[i]);
      rounded[i] = BF16ToF32(F32ToBF16(stored));
    }
    PackBf16Layout(
        type, n, depth,
        [&](int64_t row) {
          return reinterpret_cast<const uint8_t*>(file.data() + row * depth);
        },
        packed.data);
  }
  std::vector<uint16_t> file;
  std::vector<float> rounded;
  AlignedBytes packed;
};

std::vector<uint16_t> RoundRows(RandomMatrix& x) {
  const int64_t padded = Bf16PaddedDepth(x.columns());
  std::vector<uint16_t> out(static_cast<size_t>(x.rows() * padded), 0x7fff);
  for (int64_t r = 0; r < x.rows(); ++r) {
    RoundRowToBf16(&x.at(r, 0), x.columns(), out.data() + r * padded);
  }
  return out;
}

TEST(Bf16Layout, HoldsTheRoundedRows) {
  std::mt19937 random(3);
  for (const DType type : {DType::kF16, DType::kBF16}) {
    for (const int64_t depth : {1, 31, 32, 70}) {
      const int64_t n = 70;
      const Bf16Case c(type, n, depth, random);
      EXPECT_EQ(Bf16LayoutBytes(type, n, depth),
                128 * Bf16PaddedDepth(depth) * 2);
      std::vector<float> row(static_cast<size_t>(depth));
      for (int64_t i = 0; i < n; ++i) {
        ReadBf16LayoutRow(type, n, depth, c.packed.data, i, row.data());
        for (int64_t k = 0; k < depth; ++k) {
          ASSERT_EQ(row[k], c.rounded[i * depth + k]) << i << " " << k;
        }
      }
    }
  }
}

TEST(Bf16Layout, NameCarriesTheVersionOfOneDnn) {
  EXPECT_EQ(kBf16LayoutName, "onednn_bf16_" + OneDnnVersion());
}

TEST(Bf16Matmul, OneDnnHasTheBitsOfTheOwnKernelForAnyNumberOfRows) {
  if (!HasBf16()) GTEST_SKIP();
  std::mt19937 random(4);
  for (const int64_t depth : {20, 64, 520, 1000, 1024, 1088, 2100}) {
    ASSERT_EQ(WhyNotOneDnn(depth), "");
    for (const int64_t n : {32, 160}) {
      const Bf16Case c(DType::kBF16, n, depth, random);
      RandomMatrix bias(1, n, random, 0);
      for (const int64_t rows : {1, 7, 16, 31, 100, 300}) {
        RandomMatrix x(rows, depth, random, 0), residual(rows, n, random);
        const std::vector<uint16_t> rounded = RoundRows(x);
        for (const MatmulEpilogue epilogue : kEpilogues) {
          RandomMatrix y(rows, n, random), own = y;
          MatmulArgs args =
              Args(x, c.packed.data, n, bias, residual, y, epilogue);
          args.x = rounded.data();
          RunKernel(OneDnnBf16MatmulKernels()[0], args, rows % 2 == 0);
          // Each row alone.
          for (int64_t r = 0; r < rows; ++r) {
            MatmulArgs one = args;
            one.rows = 1;
            one.x = rounded.data() + r * Bf16PaddedDepth(depth);
            one.y = &own.at(r, 0);
            one.residual = &residual.at(r, 0);
            RunKernel(Bf16MatmulKernels()[0], one, false);
          }
          ASSERT_TRUE(y.SameBits(own)) << depth << " " << n << " " << rows;
        }
      }
    }
  }
}

TEST(Bf16Matmul, SumsProductsOfRoundedNumbersInFloat) {
  if (!HasBf16()) GTEST_SKIP();
  std::mt19937 random(2);
  const int64_t n = 100, depth = 1088, rows = 33;
  const Bf16Case c(DType::kF16, n, depth, random);
  RandomMatrix x(rows, depth, random, 0), y(rows, n, random, 0);
  const std::vector<uint16_t> rounded = RoundRows(x);
  RandomMatrix none(rows, n, random, 0);
  MatmulArgs args =
      Args(x, c.packed.data, n, none, none, y, MatmulEpilogue::kStore);
  args.x = rounded.data();
  args.bias = nullptr;
  RunKernel(OneDnnBf16MatmulKernels()[0], args, false);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < n; ++i) {
      double want = 0, size = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const double term = double{BF16ToF32(F32ToBF16(x.at(r, k)))} *
                            c.rounded[static_cast<size_t>(i * depth + k)];
        want += term;
        size += std::fabs(term);
      }
      ASSERT_NEAR(y.at(r, i), want, 2e-6 * size);
    }
  }
}

TEST(OneDnnMatmul, IsRefusedWithAReason) {
  if (!HasBf16()) GTEST_SKIP();
  EXPECT_EQ(WhyNotOneDnn(int64_t{1} << 40),
            "depth 1099511627776 is above 65536");
  EXPECT_EQ(OneDnnScratchBytes(int64_t{1} << 40), 0);
}

TEST(OneDnnMatmul, CutsRowsIntoPowersOfTwo) {
  for (const auto& [rows, part] : {std::pair{0, 0},
                                   {15, 0},
                                   {16, 16},
                                   {31, 16},
                                   {255, 128},
                                   {5000, 256}}) {
    EXPECT_EQ(OneDnnRows(rows), part) << rows;
  }
}

}  // namespace
}  // namespace weft
