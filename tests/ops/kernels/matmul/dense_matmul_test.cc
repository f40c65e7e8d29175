#include "ops/kernels/matmul/dense_matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "ops/dequantize.h"
#include "ops/kernels/half.h"
#include "ops/kernels/matmul/dense_isa.h"
#include "ops/kernels/matmul/pack_dense.h"
#include "ops/kernels/quantized_rows.h"
#include "tests/ops/kernels/random_matrix.h"

namespace weft {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

std::vector<MatmulKernel> KernelsHere(absl::Span<const MatmulKernel> table,
                                      DType type) {
  std::vector<MatmulKernel> here;
  for (const MatmulKernel& kernel : table) {
    if (kernel.weight == type && Includes(DetectIsa(), kernel.isa)) {
      here.push_back(kernel);
    }
  }
  return here;
}

// A weight in the file's layout, packed, and as the floats it stands for.
struct Weight {
  Weight(DType t, int64_t n, int64_t k, std::mt19937& random)
      : type(t), rows(n), depth(k) {
    RandomMatrix w(n, k, random, 0);
    for (int64_t i = 0; i < n * k; ++i) Append(w.data()[i]);
    Pack(false);
  }

  void Append(float value) {
    const size_t at = file.size();
    if (type == DType::kF32) {
      file.resize(at + 4);
      std::memcpy(&file[at], &value, 4);
      floats.push_back(value);
    } else {
      const bool half = type == DType::kF16;
      const uint16_t bits = half ? F32ToF16(value) : F32ToBF16(value);
      file.resize(at + 2);
      std::memcpy(&file[at], &bits, 2);
      floats.push_back(half ? F16ToF32(bits) : BF16ToF32(bits));
    }
  }

  // `gate`: panels alternate between the upper and the lower half of rows.
  void Pack(bool gate) {
    const int64_t panel_bytes = DensePanelBytes(type, depth);
    const int64_t half = gate ? rows / 2 : rows;
    const int64_t panels = (half + 15) / 16 * (gate ? 2 : 1);
    packed.assign(static_cast<size_t>(panels * panel_bytes), 0xff);
    for (int64_t p = 0; p < panels; ++p) {
      const uint8_t* lanes[16];
      for (int64_t i = 0; i < 16; ++i) {
        const int64_t row = (gate ? p / 2 : p) * 16 + i;
        const int64_t offset = gate && p % 2 == 1 ? half : 0;
        lanes[i] = row < half
                       ? file.data() + (offset + row) * RowBytes(type, depth)
                       : nullptr;
      }
      PackDensePanel(type, lanes, depth, packed.data() + p * panel_bytes);
    }
  }

  // Rows of the file as Pack(true) takes them: 16 of the upper half, 16 of the
  // lower, in turn. Requires rows to fill panels.
  std::vector<uint8_t> AlternatingRows() const {
    const size_t panel = static_cast<size_t>(16 * RowBytes(type, depth));
    std::vector<uint8_t> result;
    for (size_t at = 0; at < file.size() / 2; at += panel) {
      for (const size_t begin : {at, file.size() / 2 + at}) {
        result.insert(result.end(), file.begin() + begin,
                      file.begin() + begin + panel);
      }
    }
    return result;
  }

  float at(int64_t row, int64_t k) const {
    return floats[static_cast<size_t>(row * depth + k)];
  }

  DType type;
  int64_t rows, depth;
  std::vector<uint8_t> file, packed;
  std::vector<float> floats;
};

MatmulArgs Args(RandomMatrix& x, const Weight& w, bool packed,
                RandomMatrix& y) {
  MatmulArgs args = {};
  args.x = x.data();
  args.x_row_bytes = x.row_bytes();
  args.rows = x.rows();
  args.depth = w.depth;
  args.weight = packed ? w.packed.data() : w.file.data();
  args.weight_rows = w.rows;
  args.epilogue = MatmulEpilogue::kStore;
  args.y = y.data();
  args.y_row_bytes = y.row_bytes();
  return args;
}

// Panels [0, all) in pieces of `step`.
void RunAll(const MatmulKernel& kernel, const MatmulArgs& args, int64_t step) {
  const int64_t panels = (args.weight_rows + 15) / 16;
  const int64_t bytes = kernel.ThreadScratchBytes(args.depth);
  std::vector<uint8_t> scratch(static_cast<size_t>(bytes) + 64, 0xff);
  uint8_t* aligned =
      scratch.data() +
      (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  for (int64_t p = 0; p < panels; p += step) {
    kernel.run(args, p, std::min(p + step, panels), aligned);
  }
}

// The order of summation, one element at a time.
float InOrder(RandomMatrix& x, const Weight& w, int64_t row, int64_t n) {
  const int64_t block = DenseSumBlock(w.depth);
  float sum = 0;
  for (int64_t begin = 0; begin < w.depth; begin += block) {
    float chain = 0;
    for (int64_t k = begin; k < std::min(begin + block, w.depth); ++k) {
      chain = std::fma(x.at(row, k), w.at(n, k), chain);
    }
    sum = begin == 0 ? chain : sum + chain;
  }
  return sum;
}

struct Shape {
  int64_t m, n, k;
};
const Shape kShapes[] = {
    {1, 16, 1},  {1, 100, 64}, {2, 33, 513},  {3, 64, 1024},  {5, 7, 2049},
    {6, 40, 37}, {7, 96, 300}, {12, 31, 600}, {13, 80, 1100}, {29, 50, 96}};

TEST(DenseMatmul, SumsInTheOrderThatTheHeaderStates) {
  std::mt19937 random(1);
  for (const DType type : kTypes) {
    for (const Shape& s : kShapes) {
      const Weight w(type, s.n, s.k, random);
      RandomMatrix x(s.m, s.k, random);
      for (const MatmulKernel& kernel :
           KernelsHere(DenseMatmulKernels(), type)) {
        const bool packed = std::string(kernel.layout) == "panel16";
        for (const int64_t step : {2, 4, 100}) {
          RandomMatrix y(s.m, s.n, random);
          RunAll(kernel, Args(x, w, packed, y), step);
          for (int64_t r = 0; r < s.m; ++r) {
            for (int64_t n = 0; n < s.n; ++n) {
              ASSERT_EQ(y.at(r, n), InOrder(x, w, r, n)) << kernel.name();
            }
          }
          EXPECT_TRUE(y.PaddingUntouched());
        }
      }
    }
  }
}

TEST(DenseOrder, IsNearDoublePrecision) {
  std::mt19937 random(2);
  const Weight w(DType::kF16, 20, 4096, random);
  RandomMatrix x(2, 4096, random);
  for (int64_t r = 0; r < 2; ++r) {
    for (int64_t n = 0; n < 20; ++n) {
      double want = 0, size = 0;
      for (int64_t k = 0; k < 4096; ++k) {
        want += double{x.at(r, k)} * w.at(n, k);
        size += std::fabs(double{x.at(r, k)} * w.at(n, k));
      }
      EXPECT_NEAR(InOrder(x, w, r, n), want, 2e-6 * size);
    }
  }
}

TEST(DenseMatmul, AddsBiasAndResidualAfterTheSum) {
  std::mt19937 random(3);
  for (const DType type : kTypes) {
    const Weight w(type, 50, 80, random);
    RandomMatrix x(9, 80, random), bias(1, 50, random);
    for (const MatmulKernel& kernel : KernelsHere(DenseMatmulKernels(), type)) {
      const bool packed = std::string(kernel.layout) == "panel16";
      RandomMatrix y(9, 50, random), before = y;
      MatmulArgs args = Args(x, w, packed, y);
      args.bias = bias.data();
      args.epilogue = MatmulEpilogue::kResidual;
      args.residual = y.data();
      args.residual_row_bytes = y.row_bytes();
      RunAll(kernel, args, 2);
      for (int64_t r = 0; r < 9; ++r) {
        for (int64_t n = 0; n < 50; ++n) {
          ASSERT_EQ(y.at(r, n),
                    (InOrder(x, w, r, n) + bias.at(0, n)) + before.at(r, n));
        }
      }
    }
  }
}

TEST(DenseMatmul, GatesAndQuantizesAlternatingPanels) {
  std::mt19937 random(4);
  for (const DType type : kTypes) {
    for (const int64_t rows : {1, 5, 14}) {
      const GateActivation activation =
          rows == 5 ? GateActivation::kGeluTanh : GateActivation::kSilu;
      const int64_t outputs = 96;
      Weight w(type, 2 * outputs, 70, random);
      w.Pack(true);
      const std::vector<uint8_t> alternating = w.AlternatingRows();
      RandomMatrix x(rows, 70, random), bias(1, 2 * outputs, random);
      std::vector<uint8_t> first;
      for (const MatmulKernel& kernel :
           KernelsHere(DenseMatmulKernels(), type)) {
        RandomMatrix y(rows, outputs, random);
        MatmulArgs args = Args(x, w, true, y);
        if (std::string(kernel.layout) != "panel16") {
          args.weight = alternating.data();
        }
        args.bias = bias.data();
        args.epilogue = MatmulEpilogue::kGate;
        args.activation = activation;
        RunAll(kernel, args, 4);
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t n = 0; n < outputs; ++n) {
            const int64_t at = n / 16 * 32 + n % 16;
            const double gate = InOrder(x, w, r, n) + bias.at(0, at);
            const double up =
                InOrder(x, w, r, outputs + n) + bias.at(0, at + 16);
            const double twice =
                activation == GateActivation::kSilu
                    ? gate
                    : std::sqrt(8 / M_PI) *
                          (gate + 0.044715 * gate * gate * gate);
            const double want = gate / (1 + std::exp(-twice)) * up;
            ASSERT_NEAR(y.at(r, n), want, 1e-5 * (1 + std::fabs(want)));
          }
        }
        EXPECT_TRUE(y.PaddingUntouched());
        std::vector<uint8_t> q(static_cast<size_t>(rows * outputs / 32 *
                                                   kQuantizedRowsBlockBytes));
        args.epilogue = MatmulEpilogue::kGateQuantize;
        args.quantized = q.data();
        RunAll(kernel, args, 8);
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t n = 0; n < outputs; ++n) {
            const QuantizedBlock block =
                QuantizedBlockAt(q.data(), rows, outputs, r, n / 32);
            ASSERT_NEAR(block.q[n % 32] * *block.scale, y.at(r, n),
                        *block.scale * 0.5001f);
          }
        }
        if (first.empty()) first = q;
        EXPECT_EQ(first, q);
      }
    }
  }
}

TEST(DenseMatmul, PassesOnNanAndInfinityToTheirRowAlone) {
  std::mt19937 random(5);
  for (const DType type : kTypes) {
    const Weight w(type, 40, 60, random);
    RandomMatrix x(3, 60, random);
    x.at(1, 7) = NAN;
    x.at(2, 7) = INFINITY;
    for (const MatmulKernel& kernel : KernelsHere(DenseMatmulKernels(), type)) {
      RandomMatrix y(3, 40, random);
      RunAll(kernel, Args(x, w, std::string(kernel.layout) == "panel16", y), 2);
      EXPECT_TRUE(std::isfinite(y.at(0, 3)));
      EXPECT_TRUE(std::isnan(y.at(1, 3)));
      EXPECT_FALSE(std::isfinite(y.at(2, 3)));
    }
  }
}

TEST(WidenedMatmul, SumsDequantizedWeightsInTheSameOrder) {
  std::mt19937 random(6);
  for (const MatmulKernel& kernel : WidenedMatmulKernels()) {
    if (!Includes(DetectIsa(), kernel.isa)) continue;
    for (const int64_t rows : {1, 3, 9}) {
      Weight w(DType::kF32, 40, 512, random);
      // Any bytes are a row of any quantised type, but scales can be NaN.
      const int64_t row_bytes = RowBytes(kernel.weight, w.depth);
      std::vector<uint8_t> bytes(static_cast<size_t>(40 * row_bytes));
      for (uint8_t& b : bytes) b = static_cast<uint8_t>(random() & 0x3b);
      w.file = bytes;
      for (int64_t n = 0; n < 40; ++n) {
        DequantizeRow(kernel.weight, bytes.data() + n * row_bytes,
                      w.floats.data() + n * 512, 512);
      }
      RandomMatrix x(rows, 512, random), y(rows, 40, random);
      RunAll(kernel, Args(x, w, false, y), 2);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t n = 0; n < 40; ++n) {
          ASSERT_EQ(y.at(r, n), InOrder(x, w, r, n)) << kernel.name();
          ASSERT_TRUE(std::isfinite(y.at(r, n)));
        }
      }
    }
  }
}

TEST(PackDense, UnpacksToTheSameFloats) {
  std::mt19937 random(7);
  for (const DType type : kTypes) {
    const Weight w(type, 35, 19, random);
    for (int64_t n = 0; n < 48; ++n) {
      float row[19];
      UnpackDenseRow(type, w.packed.data(), 19, n, row);
      for (int64_t k = 0; k < 19; ++k) {
        EXPECT_EQ(row[k], n < 35 ? w.at(n, k) : 0.0f);
      }
    }
  }
}

}  // namespace
}  // namespace weft
