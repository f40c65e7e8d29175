// The public API on small models.
#include "runtime/engine.h"

#include <limits>
#include <string>
#include <thread>
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

GenerateRequest Greedy(std::vector<int32_t> prompt, int64_t tokens) {
  GenerateRequest request;
  request.prompt_tokens = std::move(prompt);
  request.max_tokens = tokens;
  request.sampling.temperature = 0;
  request.stop_at_end_of_text = false;
  return request;
}

std::vector<float> LastLogits(Engine& engine,
                              const std::vector<int32_t>& tokens) {
  std::vector<float> logits;
  EXPECT_TRUE(engine
                  .Evaluate(tokens, {static_cast<int64_t>(tokens.size()) - 1},
                            0,
                            [&](int64_t, absl::Span<const float> row) {
                              logits.assign(row.begin(), row.end());
                              return absl::OkStatus();
                            })
                  .ok());
  return logits;
}

TEST(EngineTest, DefaultModelGoesOnInProse) {
  const auto engine = Load("");
  ASSERT_NE(engine, nullptr);
  GenerateRequest request;
  request.prompt = "It is a truth universally acknowledged";
  request.max_tokens = 24;
  request.sampling.temperature = 0;
  std::string streamed;
  const auto result = engine->Generate(request, [&](absl::string_view text) {
    streamed += std::string(text);
    return true;
  });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(streamed, result->text);
  EXPECT_THAT(result->text, HasSubstr(" that "));
  EXPECT_EQ(result->tokens.size(), 24u);
  EXPECT_EQ(result->stop_reason, StopReason::kLength);
}

TEST(EngineTest, SameSeedGivesTheSameText) {
  const auto engine = Load("");
  ASSERT_NE(engine, nullptr);
  GenerateRequest request;
  request.prompt = "She was";
  request.max_tokens = 16;
  request.sampling.seed = 7;
  const auto first = engine->Generate(request, nullptr);
  const auto second = engine->Generate(request, nullptr);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->tokens, second->tokens);
}

TEST(EngineTest, CallbackMayStopTheText) {
  const auto engine = Load("");
  ASSERT_NE(engine, nullptr);
  GenerateRequest request;
  request.prompt = "She was";
  int calls = 0;
  const auto result =
      engine->Generate(request, [&](absl::string_view) { return ++calls < 3; });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->stop_reason, StopReason::kCancelled);
  EXPECT_EQ(calls, 3);
}

TEST(EngineTest, CancelFromAnotherThreadEndsGeneration) {
  const auto engine = Load(kSmall);
  ASSERT_NE(engine, nullptr);
  GenerateRequest request = Greedy({1}, 1'000'000'000);
  request.overflow = ContextOverflow::kShift;
  std::thread other;
  const auto result = engine->Generate(request, [&](absl::string_view) {
    if (!other.joinable()) other = std::thread([&] { engine->Cancel(); });
    return true;
  });
  if (other.joinable()) other.join();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stop_reason, StopReason::kCancelled);
}

TEST(EngineTest, FullContextStopsWithItsReason) {
  const auto engine = Load(kSmall);
  ASSERT_NE(engine, nullptr);
  const auto result = engine->Generate(Greedy({1, 286, 264}, 300), nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stop_reason, StopReason::kContext);
  // 64 positions and the token after the last.
  EXPECT_EQ(result->tokens.size(), 62u);
}

TEST(EngineTest, PromptLongerThanTheContextIsAnErrorWithBothNumbers) {
  const auto engine = Load(kSmall);
  ASSERT_NE(engine, nullptr);
  const auto result =
      engine->Generate(Greedy(std::vector<int32_t>(70, 5), 1), nullptr);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("70"));
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("64"));
}

// After a shift, what follows is what a new sequence of the kept tokens gives,
// bit for bit, for every KV type, also after several shifts.
TEST(EngineTest, ShiftedContextEqualsAFreshSequenceOfTheKeptTokens) {
  for (DType kv : {DType::kF16, DType::kF32, DType::kBF16}) {
    EngineOptions options;
    options.model.graph.kv_type = kv;
    const auto engine = Load(kSmall, options);
    ASSERT_NE(engine, nullptr);
    GenerateRequest request = Greedy({1, 286, 264}, 200);
    request.overflow = ContextOverflow::kShift;
    request.shift_keep = 1;
    const auto result = engine->Generate(request, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->tokens.size(), 200u);
    // The same by hand: a list of tokens that is cut as documented.
    std::vector<int32_t> kept = {1, 286, 264};
    for (size_t i = 0; i < result->tokens.size(); ++i) {
      const std::vector<float> logits = LastLogits(*engine, kept);
      const auto best = std::max_element(logits.begin(), logits.end());
      ASSERT_EQ(result->tokens[i], best - logits.begin()) << "step " << i;
      if (kept.size() == 64) {
        const int64_t newest = (64 - 1) / 2;
        kept.erase(kept.begin() + 1, kept.end() - newest);
      }
      kept.push_back(result->tokens[i]);
    }
  }
}

TEST(EngineTest, BadIdsAreErrors) {
  const auto engine = Load(kSmall);
  ASSERT_NE(engine, nullptr);
  for (int32_t id : {-1, 300, std::numeric_limits<int32_t>::max()}) {
    EXPECT_FALSE(engine->Generate(Greedy({1, id}, 1), nullptr).ok()) << id;
  }
  // And do no harm.
  EXPECT_TRUE(engine->Generate(Greedy({1}, 1), nullptr).ok());
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
  options.sequences = 2'000'000'000;  // times a context each
  const auto engine = Engine::Load("", options);
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(std::string(engine.status().message()),
              HasSubstr("not enough memory"));
  EXPECT_THAT(std::string(engine.status().message()), HasSubstr("--force"));
}

}  // namespace
}  // namespace weft
