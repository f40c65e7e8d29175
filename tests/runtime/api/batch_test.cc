// Several sequences in one step give each the bits it has alone.
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/api/engine.h"

namespace weft {
namespace {

struct Row {
  int32_t id, position, slot;
};

std::vector<float> RunRows(Engine& engine, const std::vector<Row>& rows) {
  std::vector<int32_t> ids, positions, slots, outputs;
  for (const Row& row : rows) {
    EXPECT_TRUE(engine.cache().Reserve(row.slot, row.position + 1).ok());
    outputs.push_back(static_cast<int32_t>(ids.size()));
    ids.push_back(row.id);
    positions.push_back(row.position);
    slots.push_back(row.slot);
  }
  const size_t vocabulary = engine.plan().model.vocabulary_size;
  std::vector<float> logits(rows.size() * vocabulary);
  Batch batch;
  batch.ids = ids;
  batch.positions = positions;
  batch.slots = slots;
  batch.output_rows = outputs;
  batch.logits = logits.data();
  EXPECT_TRUE(engine.executor().Run(batch).ok());
  return logits;
}

class BatchTest : public ::testing::TestWithParam<const char*> {};

TEST_P(BatchTest, MixedSequencesGiveTheBitsOfEachAlone) {
  EngineOptions options;
  options.slots = 4;
  options.threads = 2;
  auto loaded = Engine::Load(GetParam(), options);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  Engine& engine = **loaded;
  const size_t vocabulary = engine.plan().model.vocabulary_size;
  constexpr int kTokens = 12;
  const auto id = [&](int slot, int t) {
    return static_cast<int32_t>((7 + 31 * slot + 17 * t) % vocabulary);
  };
  // Each alone, one token at a time.
  std::vector<std::vector<float>> alone(4);
  for (int slot = 0; slot < 4; ++slot) {
    for (int t = 0; t < kTokens; ++t) {
      const std::vector<float> row = RunRows(engine, {{id(slot, t), t, slot}});
      alone[slot].insert(alone[slot].end(), row.begin(), row.end());
    }
    ASSERT_TRUE(engine.cache().Release(slot).ok());
  }
  // Slot 3 is admitted while the others decode, and brings a prompt of five.
  std::vector<std::vector<float>> mixed(4);
  for (int t = 0; t < kTokens; ++t) {
    std::vector<Row> rows;
    if (t == 2) {
      for (int i = 0; i < 5; ++i) rows.push_back({id(3, i), i, 3});
    } else if (t > 2 && t + 2 < kTokens) {
      rows.push_back({id(3, t + 2), t + 2, 3});
    }
    for (int slot = 0; slot < 3; ++slot) {
      rows.push_back({id(slot, t), t, slot});
    }
    const std::vector<float> logits = RunRows(engine, rows);
    for (size_t r = 0; r < rows.size(); ++r) {
      std::vector<float>& to = mixed[rows[r].slot];
      to.insert(to.end(), logits.begin() + r * vocabulary,
                logits.begin() + (r + 1) * vocabulary);
    }
  }
  for (int slot = 0; slot < 4; ++slot) {
    ASSERT_LE(mixed[slot].size(), alone[slot].size());
    ASSERT_GE(mixed[slot].size(), 10 * vocabulary);
    EXPECT_EQ(std::memcmp(mixed[slot].data(), alone[slot].data(),
                          mixed[slot].size() * sizeof(float)),
              0)
        << "sequence " << slot;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, BatchTest,
    ::testing::Values("", "tests/data/malformed/00-valid.gguf",
                      "tests/data/golden/arch/mixtral-moe.gguf",
                      "tests/data/golden/arch/qwen2moe.gguf",
                      "tests/data/golden/austen/austen-Q2_K.gguf",
                      "tests/data/golden/austen/austen-Q4_K_M.gguf"));

}  // namespace
}  // namespace weft
