// Vectors of texts as requests of a scheduler.
#include <cstring>
#include <future>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/api/serving.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr char kEncoder[] = "tests/data/golden/arch/bert.gguf";

Request Embedding(uint32_t seed, int64_t size) {
  Request request;
  request.prompt_tokens = RandomPrompt(seed, size);
  for (int32_t& token : request.prompt_tokens) token = 5 + token % 100;
  request.embed = true;
  return request;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(EmbeddingRequestsTest, VectorsAreThoseOfEachTextAlone) {
  const auto engine = MakeEngine(kEncoder, 1, 0);
  for (const int slots : {1, 4, 16}) {
    for (const int64_t pages : {2, 0}) {
      const auto scheduler = MakeScheduler(kEncoder, slots, pages);
      ASSERT_NE(scheduler, nullptr);
      EXPECT_EQ(scheduler->capacity(), 128);
      std::vector<std::future<absl::StatusOr<Completion>>> results;
      for (int i = 0; i < 40; ++i) {
        auto result =
            SubmitForResult(*scheduler, Embedding(i, 1 + i * 37 % 128));
        ASSERT_TRUE(result.ok()) << result.status();
        results.push_back(*std::move(result));
      }
      int64_t tokens = 0;
      for (int i = 0; i < 40; ++i) {
        const auto result = results[i].get();
        ASSERT_TRUE(result.ok()) << result.status();
        EXPECT_EQ(result->choices[0].reason, FinishReason::kEmbedded);
        const Request request = Embedding(i, 1 + i * 37 % 128);
        tokens += static_cast<int64_t>(request.prompt_tokens.size());
        EXPECT_TRUE(SameBits(result->choices[0].embedding,
                             engine->Embed(request.prompt_tokens).value()))
            << i;
      }
      const SchedulerStats stats = scheduler->GetStats();
      EXPECT_EQ(stats.requests, 40);
      EXPECT_EQ(stats.prompt_tokens, tokens);
      EXPECT_EQ(stats.prefill_tokens, tokens);
      EXPECT_EQ(stats.generated_tokens, 0);
      if (slots == 1) {
        EXPECT_EQ(stats.steps, 40);
      } else if (pages == 0) {
        EXPECT_LT(stats.steps, 35);
      }
      ExpectNoPagesUsed(*scheduler);
    }
  }
}

TEST(EmbeddingRequestsTest, RefusesWhatCannotBe) {
  const auto scheduler = MakeScheduler(kEncoder, 2, 0);
  const auto refusal = [&](Request request) {
    const auto id = scheduler->Submit(std::move(request), nullptr);
    EXPECT_FALSE(id.ok());
    return std::string(id.status().message());
  };
  EXPECT_THAT(refusal(MakeRequest({5}, 1)), HasSubstr("bert gives vectors"));
  EXPECT_THAT(refusal(Embedding(1, 129)), HasSubstr("129 tokens"));
  EXPECT_THAT(refusal(Embedding(1, 0)), HasSubstr("prompt_tokens"));
  Request two = Embedding(1, 3);
  two.choices = 2;
  EXPECT_THAT(refusal(std::move(two)), HasSubstr("choices: 2"));
}

TEST(EmbeddingRequestsTest, EndWhenTheyAreCancelledAndWhenTheSchedulerDrains) {
  const auto scheduler = MakeScheduler(kEncoder, 1, 0);
  absl::Notification hold;
  int cancelled = 0, embedded = 0;
  std::vector<RequestId> ids;
  for (int i = 0; i < 20; ++i) {
    const auto id =
        scheduler->Submit(Embedding(i, 100), [&, i](const Event& event) {
          if (i == 0) hold.WaitForNotification();
          EXPECT_TRUE(event.last);
          cancelled += event.reason == FinishReason::kCancelled;
          embedded += event.reason == FinishReason::kEmbedded;
          EXPECT_EQ(event.embedding.empty(),
                    event.reason == FinishReason::kCancelled);
        });
    ASSERT_TRUE(id.ok());
    ids.push_back(*id);
  }
  for (int i = 10; i < 15; ++i) EXPECT_TRUE(scheduler->Cancel(ids[i]));
  hold.Notify();
  scheduler->Drain(absl::InfiniteDuration());
  EXPECT_EQ(cancelled, 5);
  EXPECT_EQ(embedded, 15);
  EXPECT_EQ(scheduler->GetStats().cancelled, 5);
}

}  // namespace
}  // namespace weft
