// What the tests of the scheduler have in common.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/api/completion.h"
#include "runtime/api/scheduler.h"

namespace weft {

// Random weights; context 512, 320 tokens.
inline constexpr char kTinyModel[] = "tests/data/golden/arch/llama-gqa.gguf";

// Likewise, with recurrent blocks.
inline constexpr char kTinyHybrid[] =
    "tests/data/golden/recurrent/qwen35-head64.gguf";

inline std::unique_ptr<Engine> MakeEngine(const std::string& path, int slots,
                                          int64_t pages,
                                          const std::string& kv_type = "f16",
                                          int64_t context = 0) {
  EngineOptions options;
  const absl::StatusOr<KvTypes> types = KvTypes::Parse(kv_type);
  EXPECT_TRUE(types.ok()) << types.status();
  options.model.graph.kv_type = *types;
  if (context > 0) options.model.graph.context = context;
  options.slots = slots;
  options.kv_pages = pages;
  options.threads = 2;
  options.checkpoints = 16;
  // Where nobody guesses: for what constraints leave alone.
  options.guess_rows = 6;
  auto engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

inline std::unique_ptr<Scheduler> MakeScheduler(
    std::unique_ptr<Engine> engine, const SchedulerOptions& options) {
  if (engine == nullptr) return nullptr;
  auto scheduler = Scheduler::Create(std::move(engine), options);
  EXPECT_TRUE(scheduler.ok()) << scheduler.status();
  return scheduler.ok() ? *std::move(scheduler) : nullptr;
}

inline std::unique_ptr<Scheduler> MakeScheduler(
    const std::string& path, int slots, int64_t pages,
    const SchedulerOptions& options = {}) {
  return MakeScheduler(MakeEngine(path, slots, pages), options);
}

// Tokens that are no control tokens in the vocabularies of the tests.
inline std::vector<int32_t> RandomPrompt(uint32_t seed, int64_t size) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(size);
  for (int32_t& token : tokens) token = 10 + random() % 290;
  return tokens;
}

inline Request MakeRequest(std::vector<int32_t> prompt, int64_t max_tokens) {
  Request request;
  request.prompt_tokens = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  request.stop_at_end_of_text = false;
  return request;
}

// To the bit.
inline bool SameNumber(double a, double b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

inline void ExpectSame(const ChoiceResult& a, const ChoiceResult& b) {
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.reason, b.reason);
  ASSERT_EQ(a.tokens.size(), b.tokens.size());
  for (size_t i = 0; i < a.tokens.size(); ++i) {
    ASSERT_EQ(a.tokens[i].id, b.tokens[i].id) << "token " << i;
    ASSERT_TRUE(SameNumber(a.tokens[i].logprob, b.tokens[i].logprob)) << i;
    ASSERT_EQ(a.tokens[i].top.size(), b.tokens[i].top.size());
    for (size_t t = 0; t < a.tokens[i].top.size(); ++t) {
      ASSERT_EQ(a.tokens[i].top[t].token, b.tokens[i].top[t].token);
      ASSERT_TRUE(
          SameNumber(a.tokens[i].top[t].logprob, b.tokens[i].top[t].logprob));
    }
  }
}

inline void ExpectNoPagesUsed(Scheduler& scheduler) {
  scheduler.Drain(absl::InfiniteDuration());
  const SchedulerStats stats = scheduler.GetStats();
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(stats.pages_used, 0);
  EXPECT_EQ(stats.pages_free + stats.pages_cached, stats.pages);
  EXPECT_EQ(stats.finished, stats.requests);
}

inline void ExpectSameAll(const std::vector<Completion>& found,
                          const std::vector<Completion>& want) {
  ASSERT_EQ(found.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    SCOPED_TRACE("request " + std::to_string(i));
    ASSERT_EQ(found[i].choices.size(), want[i].choices.size());
    for (size_t c = 0; c < want[i].choices.size(); ++c) {
      ExpectSame(found[i].choices[c], want[i].choices[c]);
    }
    EXPECT_EQ(found[i].usage.completion_tokens,
              want[i].usage.completion_tokens);
  }
}

}  // namespace weft
