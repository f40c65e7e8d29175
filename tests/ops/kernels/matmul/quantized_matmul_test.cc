#include "ops/kernels/matmul/quantized_matmul.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "ops/kernels/half.h"
#include "ops/kernels/quantized_rows.h"
#include "tests/ops/kernels/matmul/quantized_case.h"

namespace weft {
namespace {

constexpr int64_t kMostRows = 250;
constexpr float kUntouched = 12345.0f;

bool Packed(const MatmulKernel& kernel) {
  return std::string(kernel.layout) == "panel16";
}

// A weight in both layouts.
struct Weight {
  Weight(DType type, std::vector<uint8_t> bytes, int64_t rows, int64_t depth)
      : rows(rows),
        depth(depth),
        file(std::move(bytes)),
        packed(PackRows(type, file, rows, depth)) {}
  const uint8_t* For(const MatmulKernel& kernel) const {
    return Packed(kernel) ? packed.data() : file.data();
  }
  int64_t rows, depth;
  std::vector<uint8_t> file;
  AlignedBytes packed;
};

// Runs a kernel as a plan would, its panels split at `split` (a multiple of
// four).
void RunSplit(const MatmulKernel& kernel, const MatmulArgs& args,
              int64_t split) {
  int64_t panels = (args.weight_rows + 15) / 16;
  if (args.epilogue == MatmulEpilogue::kGate ||
      args.epilogue == MatmulEpilogue::kGateQuantize) {
    panels = 2 * ((args.weight_rows / 2 + 15) / 16);
  }
  AlignedBytes scratch(kernel.ThreadScratchBytes(args.depth));
  if (split >= panels) split = 0;
  if (split > 0) kernel.run(args, 0, split, scratch.data());
  std::memset(scratch.data(), 0xff, kernel.ThreadScratchBytes(args.depth));
  kernel.run(args, split, panels, scratch.data());
}

// Stretches of `bytes` of a and b in turns.
std::vector<uint8_t> AlternateRows(const std::vector<uint8_t>& a,
                                   const std::vector<uint8_t>& b,
                                   int64_t bytes) {
  std::vector<uint8_t> both;
  const int64_t size = static_cast<int64_t>(a.size());
  for (int64_t at = 0; at < size; at += bytes) {
    const int64_t end = std::min(at + bytes, size);
    both.insert(both.end(), a.begin() + at, a.begin() + end);
    both.insert(both.end(), b.begin() + at, b.begin() + end);
  }
  return both;
}

class QuantizedMatmul : public ::testing::TestWithParam<MatmulKernel> {
 protected:
  static std::vector<int64_t> RowCounts(const MatmulKernel& kernel) {
    std::vector<int64_t> counts;
    // Tiles of kernels for many rows have more of them.
    const int64_t each = kernel.min_rows > 1 ? 40 : 20;
    for (int64_t m = 1; m <= each; ++m) counts.push_back(m);
    for (int64_t m : {int64_t{32}, int64_t{33}, int64_t{64}, kMostRows}) {
      if (m > each) counts.push_back(m);
    }
    while (counts.back() > kernel.max_rows) counts.pop_back();
    return counts;
  }
};

// Every element of y must equal `want` to the bit and nothing else be written.
void ExpectRows(const std::vector<float>& y, int64_t stride,
                const std::vector<float>& want, int64_t rows, int64_t columns,
                const std::string& what) {
  for (int64_t m = 0; m < rows; ++m) {
    ASSERT_EQ(0, std::memcmp(&y[m * stride], &want[m * columns], columns * 4))
        << what << ", " << rows << " rows, row " << m;
    for (int64_t n = columns; n < stride; ++n) {
      ASSERT_EQ(kUntouched, y[m * stride + n]) << what << " column " << n;
    }
  }
}

TEST_P(QuantizedMatmul, StoreAndResidualEqualThePlainLoop) {
  const MatmulKernel& kernel = GetParam();
  std::mt19937 random(11);
  const int64_t unit = Info(kernel.weight).block_elements;
  const std::vector<std::pair<int64_t, int64_t>> shapes = {
      {16, unit}, {5, 3 * unit}, {33, 2 * unit}, {100, unit == 32 ? 288 : 512}};
  for (const auto& [n, depth] : shapes) {
    const Weight weight(
        kernel.weight, RandomWeight(kernel.weight, n, depth, random), n, depth);
    const std::vector<float> x = RandomFloats(kMostRows, depth, random);
    const std::vector<float> sums =
        ReferenceSums(kernel.weight, weight.file, n, x, kMostRows, depth);
    const std::vector<float> bias = RandomFloats(1, 32 * n, random);
    const std::vector<float> residual = RandomFloats(kMostRows, 32 * n, random);
    for (int64_t m : RowCounts(kernel)) {
      AlignedBytes quantized = QuantizeRows(x, m, depth);
      const int64_t stride = n + 3;
      for (int variant : {m % 4, (m + 3) % 4}) {
        const bool with_bias = variant & 1, with_residual = variant & 2;
        std::vector<float> y(m * stride, kUntouched);
        std::vector<float> want(m * n);
        MatmulArgs args = {};
        args.x = quantized.data();
        args.rows = m;
        args.depth = depth;
        args.weight = weight.For(kernel);
        args.weight_rows = n;
        args.y = y.data();
        args.y_row_bytes = stride * 4;
        args.epilogue = MatmulEpilogue::kStore;
        if (with_bias) args.bias = bias.data();
        if (with_residual) {
          // In place, as a planner does it.
          args.epilogue = MatmulEpilogue::kResidual;
          args.residual = y.data();
          args.residual_row_bytes = args.y_row_bytes;
        }
        for (int64_t i = 0; i < m * n; ++i) {
          want[i] = sums[i];
          if (with_bias) want[i] += bias[i % n];
          if (with_residual) {
            want[i] += residual[i];
            y[i / n * stride + i % n] = residual[i];
          }
        }
        RunSplit(kernel, args, variant % 2 == 0 ? 0 : 4);
        ExpectRows(y, stride, want, m, n,
                   std::to_string(n) + "x" + std::to_string(depth) +
                       " variant " + std::to_string(variant));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(QuantizedMatmul, GateEpiloguesEqualThePlainLoop) {
  const MatmulKernel& kernel = GetParam();
  std::mt19937 random(12);
  const int64_t depth = 2 * Info(kernel.weight).block_elements;
  for (int64_t n : {32, 160, 40, 7}) {
    const auto gate = RandomWeight(kernel.weight, n, depth, random);
    const auto up = RandomWeight(kernel.weight, n, depth, random);
    // Rows as in the file must fill whole panels to alternate.
    if (!Packed(kernel) && n % 16 != 0) continue;
    AlignedBytes packed = PackGateUp(kernel.weight, gate, up, n, depth);
    const std::vector<uint8_t> rows =
        AlternateRows(gate, up, 16 * RowBytes(kernel.weight, depth));
    const std::vector<float> x = RandomFloats(kMostRows, depth, random);
    const auto gates =
        ReferenceSums(kernel.weight, gate, n, x, kMostRows, depth);
    const auto ups = ReferenceSums(kernel.weight, up, n, x, kMostRows, depth);
    const std::vector<float> bias = RandomFloats(2, 32 * n, random);
    for (int64_t m : RowCounts(kernel)) {
      AlignedBytes quantized = QuantizeRows(x, m, depth);
      for (bool with_bias : {false, true}) {
        const GateActivation activation =
            with_bias ? GateActivation::kGeluTanh : GateActivation::kSilu;
        std::vector<float> want(m * n);
        for (int64_t i = 0; i < m * n; ++i) {
          float g = gates[i], u = ups[i];
          const int64_t at = i % n / 16 * 32 + i % n % 16;
          if (with_bias) g += bias[at];
          if (with_bias) u += bias[at + 16];
          want[i] = ReferenceGate(activation, g, u);
        }
        const int64_t stride = n + 1;
        std::vector<float> y(m * stride, kUntouched);
        MatmulArgs args = {};
        args.x = quantized.data();
        args.rows = m;
        args.depth = depth;
        args.weight = Packed(kernel) ? packed.data() : rows.data();
        args.weight_rows = 2 * n;
        args.bias = with_bias ? bias.data() : nullptr;
        args.epilogue = MatmulEpilogue::kGate;
        args.activation = activation;
        args.y = y.data();
        args.y_row_bytes = stride * 4;
        RunSplit(kernel, args, with_bias ? 4 : 0);
        ExpectRows(y, stride, want, m, n, "gate " + std::to_string(n));
        if (HasFatalFailure()) return;
        if (n % 32 != 0) continue;
        const int64_t bytes = m * n / 32 * kQuantizedRowsBlockBytes;
        AlignedBytes got(bytes);
        args.epilogue = MatmulEpilogue::kGateQuantize;
        args.y = nullptr;
        args.quantized = got.data();
        RunSplit(kernel, args, with_bias ? 4 : 0);
        ASSERT_EQ(
            0, std::memcmp(got.data(), QuantizeRows(want, m, n).data(), bytes))
            << n << " outputs, " << m << " rows";
      }
    }
  }
}

// All bytes of all quants at their extremes, activations at theirs.
TEST_P(QuantizedMatmul, ExtremeQuantsAreExact) {
  const MatmulKernel& kernel = GetParam();
  std::mt19937 random(13);
  const int64_t m = std::min<int64_t>(6, kernel.max_rows);
  const int64_t n = 16, depth = 9 * Info(kernel.weight).block_elements;
  for (int fill : {0x00, 0xff, 0x80, 0x7f, 0x88, 0x0f, 0xf0}) {
    const Weight weight(kernel.weight,
                        FilledWeight(kernel.weight, n, depth,
                                     static_cast<uint8_t>(fill), random),
                        n, depth);
    for (int pattern = 0; pattern < 3; ++pattern) {
      std::vector<float> x(m * depth);
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = pattern == 0 || (pattern == 2 && i % 2 == 0) ? 127.0f : -127.0f;
      }
      const auto want =
          ReferenceSums(kernel.weight, weight.file, n, x, m, depth);
      AlignedBytes quantized = QuantizeRows(x, m, depth);
      std::vector<float> y(m * n);
      MatmulArgs args = {};
      args.x = quantized.data();
      args.rows = m;
      args.depth = depth;
      args.weight = weight.For(kernel);
      args.weight_rows = n;
      args.y = y.data();
      args.y_row_bytes = n * 4;
      RunSplit(kernel, args, 0);
      ASSERT_EQ(0, std::memcmp(want.data(), y.data(), y.size() * 4))
          << "fill " << fill << " pattern " << pattern;
    }
  }
}

// Sums whose exact integer is known (tests/data/num/integer_dots.json): block
// dot products that saturate or overflow 16 bits when done carelessly.
TEST_P(QuantizedMatmul, KnownIntegerDotsAreExact) {
  const MatmulKernel& kernel = GetParam();
  std::ifstream file("tests/data/num/integer_dots.json");
  ASSERT_TRUE(file.good());
  int cases = 0;
  for (const auto& entry : nlohmann::json::parse(file)) {
    if (DTypeFromName(entry["type"].get<std::string>()) != kernel.weight) {
      continue;
    }
    ++cases;
    const std::string hex = entry["block_hex"];
    std::vector<uint8_t> block;
    for (size_t i = 0; i < hex.size(); i += 2) {
      block.push_back(
          static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    for (int64_t blocks : {1, 9}) {
      std::vector<uint8_t> bytes;
      std::vector<float> x;
      for (int64_t i = 0; i < blocks; ++i) {
        bytes.insert(bytes.end(), block.begin(), block.end());
        for (int value : entry["x"]) x.push_back(static_cast<float>(value));
      }
      const Weight weight(kernel.weight, bytes, 1, 32 * blocks);
      AlignedBytes quantized = QuantizeRows(x, 1, 32 * blocks);
      float y = 0.0f;
      MatmulArgs args = {};
      args.x = quantized.data();
      args.rows = 1;
      args.depth = 32 * blocks;
      args.weight = weight.For(kernel);
      args.weight_rows = 1;
      args.y = &y;
      args.y_row_bytes = 4;
      RunSplit(kernel, args, 0);
      EXPECT_EQ(static_cast<float>(entry["exact"].get<int>() * blocks), y)
          << entry["name"] << " x " << blocks;
    }
  }
  const bool has_cases =
      kernel.weight == DType::kQ8_0 || kernel.weight == DType::kQ4_0;
  EXPECT_EQ(has_cases, cases > 0);
}

TEST_P(QuantizedMatmul, StaysNearTheExactSum) {
  const MatmulKernel& kernel = GetParam();
  std::mt19937 random(14);
  const int64_t n = 32, depth = 2048;
  const int64_t m = std::min<int64_t>(6, kernel.max_rows);
  const Weight weight(kernel.weight,
                      RandomWeight(kernel.weight, n, depth, random), n, depth);
  const std::vector<float> x = RandomFloats(m, depth, random);
  AlignedBytes quantized = QuantizeRows(x, m, depth);
  std::vector<float> y(m * n);
  MatmulArgs args = {};
  args.x = quantized.data();
  args.rows = m;
  args.depth = depth;
  args.weight = weight.For(kernel);
  args.weight_rows = n;
  args.y = y.data();
  args.y_row_bytes = n * 4;
  RunSplit(kernel, args, 0);
  for (int64_t i = 0; i < m * n; ++i) {
    const ExactSum exact =
        ExactDot(kernel.weight, weight.file, i % n, x, i / n, depth);
    EXPECT_NEAR(exact.value, y[i], 1e-6 * exact.magnitude) << i;
  }
}

TEST_P(QuantizedMatmul, NotANumberIsNotLost) {
  const MatmulKernel& kernel = GetParam();
  std::mt19937 random(15);
  const int64_t n = 16, depth = 512;
  const Weight weight(kernel.weight,
                      RandomWeight(kernel.weight, n, depth, random), n, depth);
  std::vector<float> x = RandomFloats(2, depth, random);
  x[depth + 70] = std::nanf("");
  AlignedBytes quantized = QuantizeRows(x, 2, depth);
  std::vector<float> y(2 * n);
  MatmulArgs args = {};
  args.x = quantized.data();
  args.rows = 2;
  args.depth = depth;
  args.weight = weight.For(kernel);
  args.weight_rows = n;
  args.y = y.data();
  args.y_row_bytes = n * 4;
  RunSplit(kernel, args, 0);
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_TRUE(std::isfinite(y[i]));
    EXPECT_TRUE(std::isnan(y[n + i]));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, QuantizedMatmul, ::testing::ValuesIn(RunnableKernels()),
    [](const ::testing::TestParamInfo<MatmulKernel>& info) {
      return info.param.name();
    });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(QuantizedMatmul);

TEST(QuantizedMatmulTable, NamesAreUniqueAndSayTypeAndIsa) {
  std::set<std::string> names;
  for (const MatmulKernel& kernel : QuantizedMatmulKernels()) {
    const std::string name = kernel.name();
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(0u, name.find("matmul_" + std::string(Info(kernel.weight).name)))
        << name;
    EXPECT_EQ(name.rfind(Name(kernel.isa)),
              name.size() - std::string(Name(kernel.isa)).size())
        << name;
  }
}

// Whatever the cap, each type and layout has a kernel for every row count.
TEST(QuantizedMatmulTable, EveryTypeIsServedFromTheLeastUp) {
  if (QuantizedMatmulKernels().empty()) GTEST_SKIP() << "no kernels here";
#if defined(__aarch64__)
  const std::vector<Isa> caps = {Isa::kNeon, Isa::kNeonDot, Isa::kNeonI8mm};
  const Isa elsewhere = Isa::kAvx512Amx;
#else
  const std::vector<Isa> caps = {Isa::kAvx2,       Isa::kAvx2Vnni,
                                 Isa::kAvx512,     Isa::kAvx512Vnni,
                                 Isa::kAvx512Bf16, Isa::kAvx512Amx};
  const Isa elsewhere = Isa::kNeonI8mm;
#endif
  for (Isa cap : caps) {
    for (DType type : QuantizedTypes()) {
      for (const char* layout : {"panel16", "rows"}) {
        bool served = false;
        for (const MatmulKernel& kernel : QuantizedMatmulKernels()) {
          served |= kernel.weight == type && Includes(cap, kernel.isa) &&
                    std::string(layout) == kernel.layout &&
                    kernel.max_rows == kAnyRows && kernel.min_rows == 1;
        }
        EXPECT_TRUE(served) << Info(type).name << layout << Name(cap);
      }
    }
  }
  for (const MatmulKernel& kernel : QuantizedMatmulKernels()) {
    EXPECT_FALSE(Includes(Isa::kRef, kernel.isa)) << kernel.name();
    EXPECT_FALSE(Includes(elsewhere, kernel.isa)) << kernel.name();
  }
}

}  // namespace
}  // namespace weft
