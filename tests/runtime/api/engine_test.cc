// Loading, and steps on small models.
#include "runtime/api/engine.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// Context 64, 300 tokens; see tests/data/malformed/manifest.json.
constexpr char kSmall[] = "tests/data/malformed/00-valid.gguf";

std::unique_ptr<Engine> Load(const std::string& path,
                             const EngineOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

TEST(EngineTest, BadIdsAreErrors) {
  const auto engine = Load(kSmall);
  ASSERT_NE(engine, nullptr);
  const auto evaluate = [&](int32_t id) {
    return engine->Evaluate(
        {1, id}, {1}, 0,
        [](int64_t, absl::Span<const float>) { return absl::OkStatus(); });
  };
  for (int32_t id : {-1, 300, std::numeric_limits<int32_t>::max()}) {
    EXPECT_FALSE(evaluate(id).ok()) << id;
  }
  // And do no harm.
  EXPECT_TRUE(evaluate(299).ok());
}

// Each bound of a step to the number: the last that is right runs, the next is
// an error that names it.
TEST(EngineTest, StepsAreCheckedToTheLastNumber) {
  EngineOptions options;
  options.slots = 2;
  const auto engine = Load(kSmall, options);
  ASSERT_NE(engine, nullptr);
  for (int32_t slot : {0, 1}) {
    ASSERT_TRUE(engine->cache().Reserve(slot, 64).ok());
  }
  std::vector<float> logits(2 * 300);
  const auto run = [&](int32_t id, int32_t position, int32_t slot,
                       std::vector<int32_t> rows) {
    Batch batch;
    batch.ids = absl::MakeConstSpan(&id, 1);
    batch.positions = absl::MakeConstSpan(&position, 1);
    batch.slots = absl::MakeConstSpan(&slot, 1);
    batch.output_rows = rows;
    batch.logits = logits.data();
    return std::string(engine->executor().Run(batch).message());
  };
  EXPECT_EQ(run(299, 63, 1, {0}), "");
  EXPECT_EQ(run(0, 0, 0, {0}), "");
  EXPECT_THAT(run(300, 63, 1, {0}),
              HasSubstr("token id is 300: want 0 to 299"));
  EXPECT_THAT(run(-1, 63, 1, {0}), HasSubstr("token id is -1"));
  EXPECT_THAT(run(299, 64, 1, {0}), HasSubstr("position is 64: want 0 to 63"));
  EXPECT_THAT(run(299, -1, 1, {0}), HasSubstr("position is -1"));
  EXPECT_THAT(run(299, 63, 2, {0}), HasSubstr("sequence is 2: want 0 to 1"));
  EXPECT_THAT(run(299, 63, -1, {0}), HasSubstr("sequence is -1"));
  EXPECT_THAT(run(299, 63, 1, {1}), HasSubstr("output row is 1: want 0 to 0"));
  EXPECT_THAT(run(299, 63, 1, {-1}), HasSubstr("output row is -1"));
  EXPECT_THAT(run(299, 63, 1, {0, 0}), HasSubstr("output rows is 2"));
  EXPECT_THAT(run(299, 63, 1, {}), HasSubstr("output rows is 0"));

  const auto run_tokens = [&](int64_t count) {
    const std::vector<int32_t> zeros(count);
    const int32_t row = 0;
    Batch batch;
    batch.ids = batch.positions = batch.slots = zeros;
    batch.output_rows = absl::MakeConstSpan(&row, 1);
    batch.logits = logits.data();
    return std::string(engine->executor().Run(batch).message());
  };
  const int64_t most = engine->plan().max_tokens();
  EXPECT_EQ(run_tokens(most), "");
  EXPECT_THAT(run_tokens(most + 1), HasSubstr("number of tokens"));
  EXPECT_THAT(run_tokens(0), HasSubstr("number of tokens"));
}

TEST(EngineTest, HugeContextLengthOfAFileIsCapped) {
  const auto engine = Load("tests/data/malformed/49-ctx-4294967295.gguf");
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->plan().context(), 4096);
}

TEST(EngineTest, ContextBeyondTheModelsIsRefusedWithBothNumbers) {
  EngineOptions options;
  options.model.graph.context = 65;
  const auto engine = Engine::Load(kSmall, options);
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(std::string(engine.status().message()), HasSubstr("65"));
  EXPECT_THAT(std::string(engine.status().message()), HasSubstr("64"));
}

TEST(EngineTest, MorePlannedThanAvailableIsRefusedBeforeLoading) {
  EngineOptions options;
  options.slots = 2'000'000'000;  // times a context each
  const auto engine = Engine::Load("", options);
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(std::string(engine.status().message()),
              HasSubstr("not enough memory"));
  EXPECT_THAT(std::string(engine.status().message()), HasSubstr("--force"));
}

}  // namespace
}  // namespace weft
