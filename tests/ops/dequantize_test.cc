#include "ops/dequantize.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace weft {
namespace {

struct Case {
  DType type;
  std::string block;
  std::vector<float> expected;
};

// Random blocks decoded by an independent program, element by element.
std::vector<Case> Cases() {
  std::ifstream file("tests/data/decoded_blocks.json");
  std::vector<Case> cases;
  for (const auto& entry : nlohmann::json::parse(file)) {
    Case c;
    c.type = *DTypeFromName(entry["type"].get<std::string>());
    c.block = absl::HexStringToBytes(entry["block"].get<std::string>());
    const std::string bits =
        absl::HexStringToBytes(entry["float_bits"].get<std::string>());
    c.expected.resize(bits.size() / sizeof(float));
    std::memcpy(c.expected.data(), bits.data(), bits.size());
    cases.push_back(std::move(c));
  }
  return cases;
}

TEST(DequantizeRow, MatchesGoldenBlocksToTheBit) {
  const std::vector<Case> cases = Cases();
  EXPECT_EQ(cases.size(), 55u);
  for (const Case& c : cases) {
    std::vector<float> values(c.expected.size());
    DequantizeRow(c.type, c.block.data(), values.data(),
                  static_cast<int64_t>(values.size()));
    EXPECT_EQ(std::memcmp(values.data(), c.expected.data(),
                          values.size() * sizeof(float)),
              0)
        << Info(c.type).name;
  }
}

// Swept, random and special blocks, again decoded elsewhere: the values' bits
// as one number (FNV-1a), since they would fill a megabyte. Every NaN counts
// alike.
TEST(DequantizeRow, MatchesTheHashesOfManyBlocks) {
  std::ifstream file("tests/data/block_hashes.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  EXPECT_EQ(cases.size(), 37u);
  for (const auto& entry : cases) {
    const DType type = *DTypeFromName(entry["type"].get<std::string>());
    const std::string blocks =
        absl::HexStringToBytes(entry["blocks"].get<std::string>());
    std::vector<float> values(blocks.size() /
                              static_cast<size_t>(Info(type).block_bytes) *
                              static_cast<size_t>(Info(type).block_elements));
    DequantizeRow(type, blocks.data(), values.data(),
                  static_cast<int64_t>(values.size()));
    uint64_t hash = 0xcbf29ce484222325u;
    for (float value : values) {
      uint32_t bits = 0x7fc00000;
      if (!std::isnan(value)) std::memcpy(&bits, &value, sizeof(bits));
      for (int i = 0; i < 4; ++i) {
        hash = (hash ^ (bits >> (8 * i) & 255)) * 0x100000001b3u;
      }
    }
    EXPECT_EQ(absl::StrCat(absl::Hex(hash, absl::kZeroPad16)),
              entry["hash"].get<std::string>())
        << Info(type).name;
  }
}

TEST(DequantizeRow, ReadsLongRowsAtAnyAlignment) {
  for (const Case& c : Cases()) {
    const size_t n = c.expected.size();
    std::string row = "x";
    for (int copy = 0; copy < 3; ++copy) row += c.block;
    std::vector<float> values(3 * n);
    DequantizeRow(c.type, row.data() + 1, values.data(),
                  static_cast<int64_t>(values.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], c.expected[i % n]) << Info(c.type).name << " " << i;
    }
  }
}

TEST(DequantizeRow, KnowsEveryTypeOfAModelFile) {
  for (const DTypeInfo& info : AllDTypes()) {
    const bool stored = info.type != DType::kI32 && info.type != DType::kQ8Rows;
    EXPECT_EQ(CanDequantize(info.type), stored) << info.name;
  }
}

}  // namespace
}  // namespace weft
