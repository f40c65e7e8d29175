#include "ops/kernels/matmul/matmul_onednn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "ops/kernels/half.h"
#include "ops/kernels/matmul/dense_matmul.h"
#include "ops/kernels/matmul/pack_dense.h"
#include "tests/ops/kernels/random_matrix.h"

namespace weft {
namespace {

struct AlignedBytes {
  explicit AlignedBytes(int64_t bytes)
      : data(static_cast<uint8_t*>(std::aligned_alloc(
            64, static_cast<size_t>(bytes + 63) / 64 * 64))) {}
  ~AlignedBytes() { std::free(data); }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  uint8_t* data;
};

void PackF32(RandomMatrix& w, uint8_t* packed) {
  for (int64_t p = 0; p * 16 < w.rows(); ++p) {
    const uint8_t* lanes[16];
    for (int64_t i = 0; i < 16; ++i) {
      lanes[i] = p * 16 + i < w.rows()
                     ? reinterpret_cast<uint8_t*>(&w.at(p * 16 + i, 0))
                     : nullptr;
    }
    PackDensePanel(DType::kF32, lanes, w.columns(),
                   packed + p * DensePanelBytes(DType::kF32, w.columns()));
  }
}

MatmulKernel OwnKernel() {
  for (const MatmulKernel& kernel : DenseMatmulKernels()) {
    if (kernel.weight == DType::kF32 && Includes(DetectIsa(), kernel.isa)) {
      return kernel;
    }
  }
  return {};
}

TEST(OneDnnMatmul, HasTheBitsOfTheOwnKernelOnTheSameWeight) {
  if (!CpuHasAvx512()) GTEST_SKIP();
  std::mt19937 random(1);
  for (const int64_t depth :
       {16, 64, 208, 512, 528, 768, 1024, 1040, 2048, 2560, 5632}) {
    for (const int64_t n : {16, 100, 272}) {
      RandomMatrix w(n, depth, random, 0);
      AlignedBytes packed((n + 15) / 16 * DensePanelBytes(DType::kF32, depth));
      PackF32(w, packed.data);
      auto matmul =
          OneDnnMatmul::Create({DType::kF32, n, depth, 64, packed.data});
      ASSERT_TRUE(matmul.ok()) << matmul.status();
      for (const int64_t rows : {1, 2, 5, 16, 33, 64}) {
        RandomMatrix x(rows, depth, random, 0);
        RandomMatrix y(rows, n, random, 0), own(rows, n, random, 0);
        ASSERT_TRUE((*matmul)->Run(x.data(), rows, y.data()).ok());
        MatmulArgs args = {};
        args.x = x.data();
        args.x_row_bytes = x.row_bytes();
        args.rows = rows;
        args.depth = depth;
        args.weight = packed.data;
        args.weight_rows = n;
        args.epilogue = MatmulEpilogue::kStore;
        args.y = own.data();
        args.y_row_bytes = own.row_bytes();
        OwnKernel().run(args, 0, (n + 15) / 16, nullptr);
        ASSERT_TRUE(y.SameBits(own)) << depth << " " << n << " " << rows;
      }
    }
  }
}

TEST(OneDnnMatmul, MultipliesRoundedActivationsByBF16Weights) {
  if (!__builtin_cpu_supports("avx512bf16")) GTEST_SKIP();
  std::mt19937 random(2);
  const int64_t n = 100, depth = 1088;
  RandomMatrix w(n, depth, random, 0);
  std::vector<uint16_t> bits(static_cast<size_t>(n * depth));
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = F32ToBF16(w.data()[i]);
  AlignedBytes packed(*OneDnnMatmul::PackedBF16Bytes(n, depth));
  ASSERT_TRUE(OneDnnMatmul::PackBF16(reinterpret_cast<uint8_t*>(bits.data()), n,
                                     depth, packed.data)
                  .ok());
  auto matmul = OneDnnMatmul::Create({DType::kBF16, n, depth, 33, packed.data});
  ASSERT_TRUE(matmul.ok()) << matmul.status();
  RandomMatrix x(33, depth, random, 0), y(33, n, random, 0);
  ASSERT_TRUE((*matmul)->Run(x.data(), 33, y.data()).ok());
  for (int64_t r = 0; r < 33; ++r) {
    RandomMatrix alone(1, n, random, 0);
    ASSERT_TRUE((*matmul)->Run(&x.at(r, 0), 1, alone.data()).ok());
    for (int64_t i = 0; i < n; ++i) {
      double want = 0, size = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const double term = double{BF16ToF32(F32ToBF16(x.at(r, k)))} *
                            BF16ToF32(bits[static_cast<size_t>(i * depth + k)]);
        want += term;
        size += std::fabs(term);
      }
      ASSERT_NEAR(y.at(r, i), want, 2e-6 * size);
      ASSERT_EQ(y.at(r, i), alone.at(0, i));
    }
  }
}

TEST(OneDnnMatmul, RefusesWhatItCannotServeAndSaysWhy) {
  alignas(64) uint8_t weight[64] = {};
  const auto odd = OneDnnMatmul::Create({DType::kF32, 16, 20, 1, weight});
  EXPECT_EQ(odd.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(odd.status().message().find("depth 20"), absl::string_view::npos);
  const auto half = OneDnnMatmul::Create({DType::kF16, 16, 32, 1, weight});
  EXPECT_EQ(half.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(half.status().message().find("f16"), absl::string_view::npos);
}

}  // namespace
}  // namespace weft
