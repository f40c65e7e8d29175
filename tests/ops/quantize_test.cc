#include "ops/quantize.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "ops/dequantize.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<DType> StoredTypes() {
  std::vector<DType> types;
  for (const DTypeInfo& info : AllDTypes()) {
    if (CanDequantize(info.type)) types.push_back(info.type);
  }
  return types;
}

std::vector<float> RoundTrip(DType type, const std::vector<float>& row) {
  const int64_t n = static_cast<int64_t>(row.size());
  std::string stored(static_cast<size_t>(RowBytes(type, n)), '\xa5');
  const absl::Status status = QuantizeRow(type, row.data(), &stored[0], n);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<float> back(row.size());
  DequantizeRow(type, stored.data(), back.data(), n);
  return back;
}

double RelativeError(const std::vector<float>& row,
                     const std::vector<float>& back) {
  double error = 0.0, square = 0.0;
  for (size_t i = 0; i < row.size(); ++i) {
    error += (double{back[i]} - row[i]) * (double{back[i]} - row[i]);
    square += double{row[i]} * row[i];
  }
  return std::sqrt(error / square);
}

std::vector<float> NormalRow(int n, float mean, float deviation, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> row(static_cast<size_t>(n));
  for (float& x : row) x = normal(random);
  return row;
}

// Fewer codewords than there are strings of digits: elements of a group cannot
// be what they like.
bool HasCodebook(DType type) {
  switch (type) {
    case DType::kIQ1_S:
    case DType::kIQ1_M:
    case DType::kIQ2_XXS:
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
    case DType::kIQ3_XXS:
    case DType::kIQ3_S:
      return true;
    default:
      return false;
  }
}

// One scale and two or three magnitudes at most.
bool IsCoarse(DType type) {
  return type == DType::kTQ1_0 || type == DType::kTQ2_0 ||
         type == DType::kQ1_0 || type == DType::kQ2_0;
}

// Values that a type without float16 scales can hold.
bool HoldsFloat16(DType type) { return type != DType::kNVFP4; }

struct Bound {
  DType type;
  double error;
};

// Root-mean-square error relative to the row. A row of one sign or with heavy
// tails must stay as good as the type's step allows, hence the second and third
// figure.
TEST(QuantizeRow, KeepsNormalWeightsWithinTheTypesError) {
  const Bound bounds[] = {
      {DType::kF32, 0.0},     {DType::kF16, 3e-4},     {DType::kBF16, 2e-3},
      {DType::kQ4_0, 0.084},  {DType::kQ4_1, 0.072},   {DType::kQ5_0, 0.042},
      {DType::kQ5_1, 0.035},  {DType::kQ8_0, 0.006},   {DType::kQ2_K, 0.28},
      {DType::kQ3_K, 0.151},  {DType::kQ4_K, 0.074},   {DType::kQ5_K, 0.036},
      {DType::kQ6_K, 0.018},  {DType::kIQ4_NL, 0.077}, {DType::kIQ4_XS, 0.078},
      {DType::kMXFP4, 0.115}, {DType::kNVFP4, 0.1},    {DType::kIQ1_S, 0.46},
      {DType::kIQ1_M, 0.43},  {DType::kIQ2_XXS, 0.34}, {DType::kIQ2_XS, 0.3},
      {DType::kIQ2_S, 0.25},  {DType::kIQ3_XXS, 0.19}, {DType::kIQ3_S, 0.135},
      {DType::kTQ1_0, 0.445}, {DType::kTQ2_0, 0.445},  {DType::kQ1_0, 0.61},
      {DType::kQ2_0, 0.4},
  };
  EXPECT_EQ(std::size(bounds), StoredTypes().size());
  const std::vector<float> row = NormalRow(16384, 0.0f, 0.02f, 1);
  for (const Bound& bound : bounds) {
    EXPECT_LE(RelativeError(row, RoundTrip(bound.type, row)), bound.error)
        << Info(bound.type).name;
  }
}

TEST(QuantizeRow, DoesNotDependOnTheSizeOfTheWeights) {
  const std::vector<float> row = NormalRow(4096, 0.0f, 1.0f, 2);
  for (DType type : StoredTypes()) {
    const double expected = RelativeError(row, RoundTrip(type, row));
    // 0.01: the float16 super-scales of K types become subnormal soon after.
    for (float factor : {0.01f, 100.0f}) {
      if (type == DType::kMXFP4) factor = factor > 1.0f ? 128.0f : 0x1p-7f;
      // Scales of E4M3 are small floats themselves.
      if (type == DType::kNVFP4) factor = factor > 1.0f ? 64.0f : 0.25f;
      std::vector<float> scaled = row;
      for (float& x : scaled) x *= factor;
      EXPECT_NEAR(RelativeError(scaled, RoundTrip(type, scaled)), expected,
                  0.05 * expected + 1e-7)
          << Info(type).name << " times " << factor;
    }
  }
}

TEST(QuantizeRow, MirrorsTheSignOfSymmetricTypes) {
  std::vector<float> row = NormalRow(2048, 0.0f, 1.0f, 3);
  std::vector<float> mirrored = row;
  for (float& x : mirrored) x = -x;
  for (DType type :
       {DType::kQ4_0, DType::kQ5_0, DType::kQ8_0, DType::kQ3_K, DType::kQ6_K,
        DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4}) {
    const std::vector<float> back = RoundTrip(type, row);
    const std::vector<float> other = RoundTrip(type, mirrored);
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_EQ(back[i], -other[i]) << Info(type).name << " " << i;
    }
  }
}

TEST(QuantizeRow, FindsLevelsThatFitExactly) {
  std::mt19937 random(4);
  for (DType type : {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1}) {
    const bool has_min = type == DType::kQ4_1 || type == DType::kQ5_1;
    const int levels = type == DType::kQ4_0 || type == DType::kQ4_1 ? 16 : 32;
    std::vector<float> row(1024);
    for (size_t i = 0; i < row.size(); ++i) {
      // Both ends occur in every block.
      const int q = i % 32 == 0   ? 0
                    : i % 32 == 1 ? levels - 1
                                  : static_cast<int>(random()) & (levels - 1);
      row[i] = 0.03125f * static_cast<float>(has_min ? q - 3 : q - levels / 2);
    }
    EXPECT_EQ(RoundTrip(type, row), row) << Info(type).name;
  }
}

TEST(QuantizeRow, KeepsZeros) {
  const std::vector<float> zeros(512, 0.0f);
  for (DType type : StoredTypes()) {
    EXPECT_EQ(RoundTrip(type, zeros), zeros) << Info(type).name;
  }
}

TEST(QuantizeRow, KeepsBlocksOfOneValue) {
  for (float value : {0.37f, -0.37f, 1.0f, -1000.0f}) {
    const std::vector<float> row(512, value);
    for (DType type : StoredTypes()) {
      // One level is enough; what is left is the rounding of float16 scales,
      // and of the integer scales of 4 or 6 bits when a neighbour shares them.
      // Scales of MXFP4 are powers of two: a value lies between two levels.
      // Scales of NVFP4 have a fraction of three bits.
      const double bound = type == DType::kMXFP4   ? 0.2
                           : type == DType::kNVFP4 ? 0.04
                                                   : 0.004;
      EXPECT_LE(RelativeError(row, RoundTrip(type, row)), bound)
          << Info(type).name << " " << value;
    }
  }
}

TEST(QuantizeRow, KeepsOneOutlierAndStaysFinite) {
  for (float outlier : {1.0f, -300.0f, 65504.0f, -65504.0f}) {
    std::vector<float> row = NormalRow(512, 0.0f, 0.02f, 5);
    row[77] = outlier;
    for (DType type : StoredTypes()) {
      if (!HoldsFloat16(type) && std::fabs(outlier) > 300.0f) continue;
      const std::vector<float> back = RoundTrip(type, row);
      // Q2_K shares 4-bit scales, MXFP4 has few levels.
      // A codeword has small values beside the outlier only at a price.
      const float bound = HasCodebook(type) || IsCoarse(type) ? 1.0f
                          : type == DType::kQ2_K              ? 0.1f
                          : type == DType::kMXFP4             ? 0.2f
                                                              : 0.04f;
      EXPECT_NEAR(back[77], outlier, bound * std::fabs(outlier))
          << Info(type).name;
      for (float x : back) EXPECT_TRUE(std::isfinite(x)) << Info(type).name;
    }
  }
}

TEST(QuantizeRow, KeepsTheWholeRangeOfFloat16) {
  std::vector<float> row(512);
  for (size_t i = 0; i < row.size(); ++i) {
    row[i] = i % 3 == 0 ? 65504.0f : i % 3 == 1 ? -65504.0f : -65000.0f;
  }
  for (DType type : StoredTypes()) {
    if (!HoldsFloat16(type)) continue;
    EXPECT_LE(RelativeError(row, RoundTrip(type, row)),
              HasCodebook(type) ? 0.6 : 0.16)
        << Info(type).name;
  }
}

// The error of columns that matter is what counts.
TEST(QuantizeRow, ObeysTheImportance) {
  const std::vector<float> row = NormalRow(4096, 0.0f, 0.02f, 9);
  std::vector<float> importance(row.size());
  for (size_t i = 0; i < importance.size(); ++i) {
    importance[i] = i % 8 == 3 ? 100.0f : 1.0f;
  }
  const auto weighted = [&](DType type, const float* weights) {
    std::string stored(static_cast<size_t>(RowBytes(type, 4096)), 'x');
    EXPECT_TRUE(QuantizeRow(type, row.data(), &stored[0], 4096, weights).ok());
    std::vector<float> back(row.size());
    DequantizeRow(type, stored.data(), back.data(), 4096);
    double error = 0.0;
    for (size_t i = 0; i < row.size(); ++i) {
      error += importance[i] * std::pow(double{back[i]} - row[i], 2);
    }
    return error;
  };
  for (DType type : StoredTypes()) {
    if (Info(type).block_elements == 1 || type == DType::kQ8_0) continue;
    EXPECT_LT(weighted(type, importance.data()), weighted(type, nullptr))
        << Info(type).name;
    // No importance at all is none that is known.
    const std::vector<float> zeros(row.size(), 0.0f);
    EXPECT_LE(weighted(type, zeros.data()), 1.1 * weighted(type, nullptr))
        << Info(type).name;
  }
}

// Row of a ternary model: whatever the scale, nothing is lost.
TEST(QuantizeRow, KeepsTernaryRows) {
  std::mt19937 random(10);
  std::vector<float> row(1024);
  for (float& x : row) x = 0.75f * (static_cast<int>(random() % 3) - 1);
  for (DType type : {DType::kTQ1_0, DType::kTQ2_0, DType::kQ2_0}) {
    EXPECT_EQ(RoundTrip(type, row), row) << Info(type).name;
  }
}

TEST(QuantizeRow, SurvivesSubnormals) {
  for (float size : {1e-40f, 1e-30f, 1e-20f, 1e-10f, 1e-7f, 1e-5f}) {
    const std::vector<float> row = NormalRow(512, 0.0f, size, 6);
    for (DType type : StoredTypes()) {
      // Never worse than zeros by more than the smallest float16 allows.
      const std::vector<float> back = RoundTrip(type, row);
      double error = 0.0, square = 0.0;
      for (size_t i = 0; i < row.size(); ++i) {
        error += std::pow(double{back[i]} - row[i], 2) / 512.0;
        square += std::pow(double{row[i]}, 2) / 512.0;
      }
      EXPECT_LE(std::sqrt(error), 1.01 * std::sqrt(square) + 3e-8)
          << Info(type).name << " " << size;
    }
  }
}

// No scale in reach is better, for any block.
TEST(QuantizeRow, FindsTheBestPowerOfTwo) {
  for (int seed = 20; seed < 40; ++seed) {
    const std::vector<float> row = NormalRow(32, 0.0f, 1.0f, seed);
    std::string block(17, 'x');
    ASSERT_TRUE(QuantizeRow(DType::kMXFP4, row.data(), &block[0], 32).ok());
    std::vector<float> back(32);
    DequantizeRow(DType::kMXFP4, block.data(), back.data(), 32);
    const double error = RelativeError(row, back);
    for (int e = 120; e < 132; ++e) {
      double other = 0.0, square = 0.0;
      for (float x : row) {
        double least = 1e30;
        for (double level : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0}) {
          least = std::min(least, std::fabs(std::fabs(double{x}) -
                                            std::ldexp(level, e - 127)));
        }
        other += least * least;
        square += double{x} * x;
      }
      EXPECT_LE(error, std::sqrt(other / square) * (1 + 1e-6)) << e;
    }
  }
}

// A range far from zero must not lose its digits in the sums.
TEST(QuantizeRow, MinimumTypesKeepARangeFarFromZero) {
  const std::vector<float> row = NormalRow(1024, -100.0f, 1.0f, 7);
  for (const Bound& bound :
       {Bound{DType::kQ4_1, 1.5e-3}, Bound{DType::kQ5_1, 1e-3},
        Bound{DType::kQ4_K, 1.1e-2}, Bound{DType::kQ5_K, 1.1e-2}}) {
    EXPECT_LE(RelativeError(row, RoundTrip(bound.type, row)), bound.error)
        << Info(bound.type).name;
  }
}

// A row of the default model as llama.cpp stores it. The other types are
// searched for, and no two programs search alike.
TEST(QuantizeRow, WritesTheUsualBytesWhereThereIsNothingToSearch) {
  std::ifstream file("tests/data/quantized_row.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  const auto bytes = [&](const char* key) {
    return absl::HexStringToBytes(golden[key].get<std::string>());
  };
  const std::string bits = bytes("float_bits");
  std::vector<float> row(256);
  ASSERT_EQ(bits.size(), row.size() * sizeof(float));
  std::memcpy(row.data(), bits.data(), bits.size());
  for (DType type : {DType::kQ8_0, DType::kF16, DType::kBF16}) {
    std::string stored(static_cast<size_t>(RowBytes(type, 256)), 'x');
    ASSERT_TRUE(QuantizeRow(type, row.data(), &stored[0], 256).ok());
    EXPECT_EQ(stored, bytes(Info(type).name)) << Info(type).name;
  }
}

TEST(QuantizeRow, NamesNanAndInfinity) {
  for (DType type : StoredTypes()) {
    std::vector<float> row(512, 1.0f);
    std::string stored(static_cast<size_t>(RowBytes(type, 512)), 'x');
    const std::string before = stored;
    row[300] = std::numeric_limits<float>::quiet_NaN();
    absl::Status status = QuantizeRow(type, row.data(), &stored[0], 512);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("NaN: element 300"));
    row[300] = -kInfinity;
    status = QuantizeRow(type, row.data(), &stored[0], 512);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("infinity: element 300"));
    EXPECT_EQ(stored, before) << Info(type).name;
  }
}

TEST(QuantizeRow, RefusesValuesThatFloat16CannotHold) {
  std::vector<float> row(256, 0.0f);
  row[8] = -65600.0f;
  for (DType type : StoredTypes()) {
    std::string stored(static_cast<size_t>(RowBytes(type, 256)), 'x');
    const bool holds = type == DType::kF32 || type == DType::kBF16;
    EXPECT_EQ(QuantizeRow(type, row.data(), &stored[0], 256).ok(), holds)
        << Info(type).name;
  }
  row[8] = std::numeric_limits<float>::max();
  std::string stored(512, 'x');
  EXPECT_FALSE(QuantizeRow(DType::kBF16, row.data(), &stored[0], 256).ok());
}

TEST(QuantizeRow, NeverWritesAPartialBlock) {
  const std::vector<float> row(512, 1.0f);
  for (DType type : StoredTypes()) {
    const int block = Info(type).block_elements;
    if (block == 1) continue;
    std::string stored(4096, 'x');
    for (int n : {1, block - 1, block + 1, block + 16}) {
      const absl::Status status = QuantizeRow(type, row.data(), &stored[0], n);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
          << Info(type).name << " " << n;
      EXPECT_EQ(stored, std::string(4096, 'x'));
    }
    EXPECT_TRUE(QuantizeRow(type, row.data(), &stored[0], 0).ok());
  }
}

TEST(QuantizeRow, RefusesTypesThatWeightsNeverHave) {
  const std::vector<float> row(32, 1.0f);
  std::string stored(4096, 'x');
  for (DType type : {DType::kI32, DType::kQ8Rows}) {
    EXPECT_FALSE(QuantizeRow(type, row.data(), &stored[0], 32).ok());
  }
}

TEST(QuantizeRow, WritesAtAnyAlignmentAndOnlyItsBytes) {
  const std::vector<float> row = NormalRow(512, 0.0f, 1.0f, 8);
  for (DType type : StoredTypes()) {
    const size_t bytes = static_cast<size_t>(RowBytes(type, 512));
    std::string aligned(bytes, 'x'), shifted(bytes + 2, 'y');
    ASSERT_TRUE(QuantizeRow(type, row.data(), &aligned[0], 512).ok());
    ASSERT_TRUE(QuantizeRow(type, row.data(), &shifted[1], 512).ok());
    EXPECT_EQ(shifted, "y" + aligned + "y") << Info(type).name;
  }
}

}  // namespace
}  // namespace weft
