// A request gives the same bits whatever happens around it.
#include <cstring>
#include <future>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "runtime/cache/checkpoints.h"
#include "tests/runtime/api/serving.h"

namespace weft {
namespace {

constexpr int kRequests = 16;

struct ModelAndCache {
  const char* path;
  const char* kv_type;
};
constexpr ModelAndCache kModels[] = {{kTinyModel, "f16"}, {kTinyHybrid, "f16"},
                                     {"", "f16"},         {"", "f32"},
                                     {"", "bf16"},        {"", "q8_0"}};

// Half of them greedy; prompts of many lengths, some of which begin alike.
Request RequestOf(int index) {
  std::vector<int32_t> prompt =
      RandomPrompt(index % 2 == 0 ? 1 : index, 20 + 23 * (index % 9));
  prompt.push_back(20 + index);
  Request request = MakeRequest(std::move(prompt), 24 + 37 * (index % 5));
  request.logprobs = 3;
  if (index % 4 >= 2) {
    request.sampling.temperature = 0.9f;
    request.sampling.seed = 100 + index;
    request.sampling.top_p = 0.95f;
    request.sampling.presence_penalty = 0.2f;
  }
  return request;
}

// Each by itself, on a scheduler that has seen nothing.
std::vector<ChoiceResult> Alone(const ModelAndCache& model) {
  std::vector<ChoiceResult> results;
  SchedulerOptions options;
  options.prefix_cache = false;
  const auto scheduler =
      MakeScheduler(MakeEngine(model.path, 1, 0, model.kv_type), options);
  for (int i = 0; i < kRequests; ++i) {
    auto completion = Complete(*scheduler, RequestOf(i));
    EXPECT_TRUE(completion.ok()) << completion.status();
    results.push_back(completion->choices[0]);
    EXPECT_EQ(completion->usage.cached_tokens, 0);
  }
  return results;
}

struct Setting {
  const char* name;
  int slots;
  int64_t pages;
  int64_t chunk;
  bool prefix_cache;
  int rounds;  // of the same requests
};

class SchedulerIdentityTest : public ::testing::TestWithParam<ModelAndCache> {};

TEST_P(SchedulerIdentityTest, AloneInABatchCachedCutAndPreempted) {
  const std::vector<ChoiceResult> alone = Alone(GetParam());
  for (const Setting& setting : std::vector<Setting>{
           {"batch of 16", 16, 0, 64, false, 1},
           {"chunks of 1", 16, 0, 1, false, 1},
           {"chunks of 7", 16, 0, 7, true, 1},
           {"chunks of 512", 16, 0, 512, true, 1},
           {"prefix cache", 4, 0, 64, true, 2},
           {"tiny pool", 16, 8, 64, true, 2},
           {"tiny pool, chunks of 7", 16, 8, 7, true, 2},
           {"tiny pool without cache", 16, 8, 32, false, 1},
       }) {
    SCOPED_TRACE(setting.name);
    SchedulerOptions options;
    options.prefill_tokens = setting.chunk;
    options.prefill_tokens_alone = setting.chunk;
    options.prefix_cache = setting.prefix_cache;
    const auto scheduler =
        MakeScheduler(MakeEngine(GetParam().path, setting.slots, setting.pages,
                                 GetParam().kv_type),
                      options);
    ASSERT_NE(scheduler, nullptr);
    for (int round = 0; round < setting.rounds; ++round) {
      // Holds the scheduler's thread until all are there.
      absl::Notification submitted;
      ASSERT_TRUE(
          scheduler
              ->Submit(MakeRequest({20}, 1),
                       [&](const Event&) { submitted.WaitForNotification(); })
              .ok());
      std::vector<std::future<absl::StatusOr<Completion>>> results;
      for (int i = 0; i < kRequests; ++i) {
        auto result = SubmitForResult(*scheduler, RequestOf(i));
        ASSERT_TRUE(result.ok()) << result.status();
        results.push_back(*std::move(result));
      }
      submitted.Notify();
      for (int i = 0; i < kRequests; ++i) {
        SCOPED_TRACE(i);
        const auto completion = results[i].get();
        ASSERT_TRUE(completion.ok()) << completion.status();
        ExpectSame(completion->choices[0], alone[i]);
      }
    }
    ExpectNoPagesUsed(*scheduler);
    const SchedulerStats stats = scheduler->GetStats();
    // That what is tried has happened.
    if (setting.pages == 8) {
      EXPECT_GT(stats.preemptions, 0);
      EXPECT_GT(stats.recomputed_tokens, 0);
    }
    if (setting.rounds == 2) {
      EXPECT_GT(stats.prefix_hit_tokens, 0);
    }
    if (!setting.prefix_cache && setting.pages == 0) {
      EXPECT_EQ(stats.prefix_hit_tokens, 0);
    }
    if (setting.chunk == 1) {
      EXPECT_GT(stats.steps, 100);
    }
  }
}

// Prompts that are repeated, that differ in their last token or in the middle,
// that go on, and that are asked for several times at once, on a cache whose
// memory is full of NaN before: nothing behind a sequence's last token counts,
// neither where pages are fresh nor where they are copies.
TEST_P(SchedulerIdentityTest, RepeatedPromptsOfAnyLength) {
  SchedulerOptions options;
  options.prefix_cache = false;
  const auto plain = MakeScheduler(
      MakeEngine(GetParam().path, 1, 0, GetParam().kv_type), options);
  ASSERT_NE(plain, nullptr);
  // As many pages as must be, and one that holds all prompts' at once.
  for (const int64_t pages : {3, 100}) {
    auto engine = MakeEngine(GetParam().path, 3, pages, GetParam().kv_type);
    ASSERT_NE(engine, nullptr);
    for (const KvState& state : engine->cache().states()) {
      const KvCache& cache = engine->cache();
      const int64_t places = state.page_table != nullptr
                                 ? pages
                                 : cache.pool().slots() + cache.checkpoints();
      std::memset(state.pages, 0xff, places * state.page_bytes);
    }
    const bool recurrent = engine->cache().has_slots();
    const auto cached = MakeScheduler(std::move(engine), {});
    for (const int size : {2, 3, 40, 63, 64, 65, 66, 100, 129, 150}) {
      SCOPED_TRACE(size);
      std::vector<int32_t> prompt = RandomPrompt(size, size);
      prompt[0] = 10 + size;
      std::vector<int32_t> last = prompt, middle = prompt, longer = prompt;
      last.back() = 9;
      middle[size / 2] = 9;
      longer.insert(longer.end(), 5, 9);
      const struct {
        const std::vector<int32_t>& prompt;
        int choices;
        int64_t from_cache;
      } requests[] = {
          {prompt, 1, 0},        {prompt, 1, size - 1}, {last, 1, size - 1},
          {prompt, 1, size - 1}, {middle, 1, size / 2}, {longer, 1, size},
          {prompt, 3, size - 1}, {last, 2, size - 1},   {prompt, 1, size - 1}};
      for (const auto& [tokens, choices, from_cache] : requests) {
        const auto run = [&, &tokens = tokens,
                          choices = choices](Scheduler& scheduler) {
          Request request = MakeRequest(tokens, 20);
          request.choices = choices;
          request.logprobs = 2;
          request.sampling.temperature = choices > 1 ? 1 : 0;
          request.sampling.seed = 3;
          return Complete(scheduler, std::move(request));
        };
        const auto expected = run(*plain);
        const auto got = run(*cached);
        ASSERT_TRUE(expected.ok() && got.ok()) << got.status();
        for (int i = 0; i < choices; ++i) {
          ExpectSame(got->choices[i], expected->choices[i]);
        }
        EXPECT_EQ(expected->usage.cached_tokens, 0);
        if (pages != 100) continue;
        // Recurrent states are found where they were kept: before the last
        // token of a prompt that is long enough.
        const bool kept = size > Checkpoints::kLeast && from_cache >= size - 1;
        EXPECT_EQ(got->usage.cached_tokens, !recurrent ? from_cache
                                            : kept     ? size - 1
                                                       : 0);
      }
    }
    ExpectNoPagesUsed(*cached);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SchedulerIdentityTest,
                         ::testing::ValuesIn(kModels));

// The same tokens as a loop of single steps and a sampler, and
// log-probabilities of its logits.
TEST(SchedulerIdentity, GivesWhatOneSequenceAloneGives) {
  auto engine = Engine::Load(kTinyModel, {});
  ASSERT_TRUE(engine.ok());
  const auto scheduler = MakeScheduler(kTinyModel, 2, 0);
  for (int i = 0; i < 4; ++i) {
    const Request request = RequestOf(i);
    std::vector<int32_t> all = request.prompt_tokens;
    std::vector<int32_t> expected;
    std::vector<int64_t> positions;
    {
      auto sampler = Sampler::Create(request.sampling, 320);
      ASSERT_TRUE(sampler.ok());
      Session session((*engine)->plan(), &(*engine)->executor(),
                      &(*engine)->cache(), 0);
      ASSERT_TRUE(session.Append(all).ok());
      for (int64_t n = 0; n < request.max_tokens; ++n) {
        const auto token = sampler->Sample(session.logits(), all);
        ASSERT_TRUE(token.ok());
        positions.push_back(static_cast<int64_t>(all.size()) - 1);
        all.push_back(*token);
        expected.push_back(*token);
        ASSERT_TRUE(session.Append(absl::MakeConstSpan(&*token, 1)).ok());
      }
    }
    const auto completion = Complete(*scheduler, RequestOf(i));
    ASSERT_TRUE(completion.ok());
    const ChoiceResult& choice = completion->choices[0];
    ASSERT_EQ(choice.tokens.size(), expected.size());
    size_t next = 0;
    ASSERT_TRUE(
        (*engine)
            ->Evaluate(all, positions, 0,
                       [&](int64_t, absl::Span<const float> logits) {
                         const GeneratedToken& token = choice.tokens[next];
                         EXPECT_EQ(token.id, expected[next]);
                         EXPECT_TRUE(SameNumber(
                             token.logprob, *LogProbability(logits, token.id)));
                         ++next;
                         return absl::OkStatus();
                       })
            .ok());
    EXPECT_EQ(next, choice.tokens.size());
  }
}

TEST(SchedulerIdentity, ChoicesAreThoseOfTheirSeedsAndShareThePrompt) {
  for (const bool cache : {true, false}) {
    SchedulerOptions options;
    options.prefix_cache = cache;
    const auto scheduler = MakeScheduler(kTinyModel, 4, 0, options);
    Request request = MakeRequest(RandomPrompt(5, 200), 20);
    request.sampling.temperature = 1;
    request.sampling.seed = 11;
    request.logprobs = 1;
    request.choices = 5;
    const auto together = Complete(*scheduler, std::move(request));
    ASSERT_TRUE(together.ok());
    ASSERT_EQ(together->choices.size(), 5u);
    EXPECT_EQ(together->usage.prompt_tokens, 200);
    EXPECT_EQ(together->usage.cached_tokens, 0);
    EXPECT_EQ(together->usage.completion_tokens, 100);
    // The prompt ran once, but for its last token.
    EXPECT_EQ(scheduler->GetStats().prefill_tokens, 200 + 4);
    for (int i = 0; i < 5; ++i) {
      Request single = MakeRequest(RandomPrompt(5, 200), 20);
      single.sampling.temperature = 1;
      single.sampling.seed = ChoiceSeed(11, i);
      single.logprobs = 1;
      const auto alone = Complete(*scheduler, std::move(single));
      ASSERT_TRUE(alone.ok());
      ExpectSame(together->choices[i], alone->choices[0]);
      EXPECT_EQ(alone->usage.cached_tokens, cache ? 199 : 0);
      if (i > 0) {
        EXPECT_NE(together->choices[i].text, together->choices[0].text);
      }
    }
    ExpectNoPagesUsed(*scheduler);
  }
}

}  // namespace
}  // namespace weft
