// Texts that are longer than the context.
#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/api/serving.h"

namespace weft {
namespace {

// 300 tokens; see tests/data/malformed/manifest.json.
constexpr char kSmall[] = "tests/data/malformed/00-valid.gguf";
constexpr int64_t kContext = 64;

class ContextShiftTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Engine> Small(int slots, int64_t pages = 0,
                                const char* kv_type = "f16") {
    return MakeEngine(GetParam(), slots, pages, kv_type, kContext);
  }
};

int32_t MostLikelyAfter(Engine& engine, const std::vector<int32_t>& tokens) {
  int64_t best = -1;
  EXPECT_TRUE(engine
                  .Evaluate(tokens, {static_cast<int64_t>(tokens.size()) - 1},
                            0,
                            [&](int64_t, absl::Span<const float> row) {
                              best = std::max_element(row.begin(), row.end()) -
                                     row.begin();
                              return absl::OkStatus();
                            })
                  .ok());
  return static_cast<int32_t>(best);
}

Request Shifting(std::vector<int32_t> prompt, int64_t tokens, int64_t keep) {
  Request request = MakeRequest(std::move(prompt), tokens);
  request.overflow = ContextOverflow::kShift;
  request.shift_keep = keep;
  return request;
}

// What follows is what a new sequence of the kept tokens gives, bit for bit,
// for every KV type, also after several shifts.
TEST_P(ContextShiftTest, WhatFollowsIsWhatFollowsTheKeptTokensAlone) {
  for (const char* kv : {"f16", "f32", "bf16"}) {
    for (const int64_t keep : {0, 1, 4, 1000}) {
      const auto engine = Small(1, 0, kv);
      const auto scheduler = MakeScheduler(Small(1, 0, kv), {});
      const auto result =
          Complete(*scheduler, Shifting({1, 286, 264}, 200, keep));
      ASSERT_TRUE(result.ok()) << result.status();
      const std::vector<GeneratedToken>& tokens = result->choices[0].tokens;
      ASSERT_EQ(tokens.size(), 200u);
      EXPECT_EQ(result->choices[0].reason, FinishReason::kLength);
      EXPECT_GE(scheduler->GetStats().context_shifts, 4);
      // The same by hand: a list of tokens that is cut as documented.
      std::vector<int32_t> kept = {1, 286, 264};
      for (size_t i = 0; i < tokens.size(); ++i) {
        ASSERT_EQ(tokens[i].id, MostLikelyAfter(*engine, kept))
            << kv << " step " << i;
        if (kept.size() == kContext) {
          const int64_t first = std::min(keep, kContext / 2);
          const int64_t newest = (kContext - first) / 2;
          kept.erase(kept.begin() + first, kept.end() - newest);
        }
        kept.push_back(tokens[i].id);
      }
    }
  }
}

// Whatever runs beside them, with log-probabilities, samplers and penalties, in
// few pages.
TEST_P(ContextShiftTest, ShiftedTextsAreTheSameBesideOthers) {
  const auto request = [](int i) {
    Request request = Shifting(RandomPrompt(i, 20 + 7 * i), 150, 2 + i);
    request.sampling.temperature = 0.8f;
    request.sampling.seed = i;
    request.logprobs = 2;
    return request;
  };
  const auto alone = MakeScheduler(Small(1), {});
  SchedulerOptions options;
  options.prefill_tokens = 8;
  const auto together = MakeScheduler(Small(3, 2), options);
  std::vector<std::future<absl::StatusOr<Completion>>> results;
  for (int i = 0; i < 5; ++i) {
    auto result = SubmitForResult(*together, request(i));
    ASSERT_TRUE(result.ok()) << result.status();
    results.push_back(*std::move(result));
  }
  for (int i = 0; i < 5; ++i) {
    const auto expected = Complete(*alone, request(i));
    const auto found = results[i].get();
    ASSERT_TRUE(expected.ok() && found.ok());
    ExpectSame(found->choices[0], expected->choices[0]);
  }
  ExpectNoPagesUsed(*together);
}

INSTANTIATE_TEST_SUITE_P(Models, ContextShiftTest,
                         ::testing::Values(kSmall, kTinyHybrid));

TEST(ContextEndTest, OthersStopWhereTheContextEnds) {
  const auto scheduler = MakeScheduler(kSmall, 1, 0);
  const auto result = Complete(*scheduler, MakeRequest({1, 286, 264}, 300));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->choices[0].reason, FinishReason::kContext);
  // 64 positions and the token after the last.
  EXPECT_EQ(result->choices[0].tokens.size(), 62u);
}

TEST(ContextEndTest, AnEndlessTextEndsWhenItIsCancelled) {
  const auto scheduler = MakeScheduler(kSmall, 1, 0);
  size_t tokens = 0;
  const auto result =
      Complete(*scheduler, Shifting({1}, -1, 4), [&](const Event& event) {
        tokens += event.tokens.size();
        if (tokens > 500) scheduler->Cancel(event.request);
      });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->choices[0].reason, FinishReason::kCancelled);
}

}  // namespace
}  // namespace weft
