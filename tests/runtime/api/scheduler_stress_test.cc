// Many threads that submit, cancel and read, on a pool of pages that is too
// small: every text is what it is alone, or a beginning of it, and no page is
// lost.
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runtime/api/serving.h"
#include "tests/runtime/speculation/test_proposers.h"

// How many requests, and how many threads submit them (BUILD.bazel).
#ifndef REQUESTS
#define REQUESTS 400
#endif
#ifndef CLIENTS
#define CLIENTS 8
#endif

namespace weft {
namespace {

constexpr int kKinds = 12;

Request RequestOf(int kind) {
  std::vector<int32_t> prompt = RandomPrompt(kind % 3, 5 + 37 * (kind % 7));
  prompt.push_back(20 + kind);
  Request request = MakeRequest(std::move(prompt), 30 + 23 * (kind % 8));
  request.logprobs = kind % 3 - 1;
  if (kind % 2 == 0) {
    request.sampling.temperature = 1;
    request.sampling.seed = kind;
  }
  if (kind % 4 == 1) request.choices = 3;
  if (kind % 5 == 2) request.stop_strings = {"ab", "Q"};
  return request;
}

class Client {
 public:
  Client(Scheduler* scheduler, const std::vector<Completion>* alone,
         uint32_t seed)
      : scheduler_(scheduler), alone_(alone), random_(seed) {}

  void Run(int requests) {
    for (int i = 0; i < requests; ++i) RunOne();
  }

 private:
  void RunOne() {
    const int kind = static_cast<int>(random_() % kKinds);
    const auto queue = std::make_shared<EventQueue>();
    const bool late = random_() % 8 == 0;
    const EventCallback callback = queue->Callback();
    absl::StatusOr<RequestId> id = absl::UnavailableError("");
    while (!id.ok()) {
      Request request = RequestOf(kind);
      if (late) {
        request.deadline = SteadyTimeIn(
            absl::Microseconds(static_cast<int>(random_() % 5000)));
      }
      id = scheduler_->Submit(std::move(request), callback);
      if (!id.ok()) {
        ASSERT_EQ(id.status().code(), absl::StatusCode::kResourceExhausted);
        std::this_thread::yield();
      }
    }
    int events_until_cancel = -1;
    if (random_() % 4 == 0)
      events_until_cancel = static_cast<int>(random_() % 20);
    Completion got;
    got.choices.resize(RequestOf(kind).choices);
    if (events_until_cancel == 0) scheduler_->Cancel(*id);
    Event event;
    while (queue->Next(absl::InfiniteDuration(), &event)) {
      if (--events_until_cancel == 0) scheduler_->Cancel(*id);
      ChoiceResult& choice = got.choices[event.choice];
      choice.text += event.text;
      choice.tokens.insert(choice.tokens.end(), event.tokens.begin(),
                           event.tokens.end());
      if (!event.finished) continue;
      choice.reason = event.reason;
      choice.stop_string = event.stop_string;
    }
    for (size_t i = 0; i < got.choices.size(); ++i) {
      Check(got.choices[i], (*alone_)[kind].choices[i]);
    }
    scheduler_->GetStats();
  }

  static void Check(const ChoiceResult& got, const ChoiceResult& alone) {
    if (got.reason != FinishReason::kCancelled &&
        got.reason != FinishReason::kDeadline) {
      ExpectSame(got, alone);
      return;
    }
    // Text that was held back, since it may begin a stop string, is given at
    // the end, so it can be longer than what is left of it alone.
    ASSERT_LE(got.tokens.size(), alone.tokens.size() + 2);
    const size_t count = std::min(got.tokens.size(), alone.tokens.size());
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(got.tokens[i].id, alone.tokens[i].id);
      ASSERT_TRUE(SameNumber(got.tokens[i].logprob, alone.tokens[i].logprob));
    }
  }

  Scheduler* scheduler_;
  const std::vector<Completion>* alone_;
  std::mt19937 random_;
};

TEST(SchedulerStressTest, NothingIsLostOrMixedUp) {
  std::vector<Completion> alone;
  {
    SchedulerOptions options;
    options.prefix_cache = false;
    const auto scheduler = MakeScheduler(kTinyModel, 1, 0, options);
    for (int kind = 0; kind < kKinds; ++kind) {
      auto completion = Complete(*scheduler, RequestOf(kind));
      ASSERT_TRUE(completion.ok()) << completion.status();
      alone.push_back(*std::move(completion));
    }
  }
  constexpr std::pair<bool, bool> kSettings[] = {
      {true, true}, {true, false}, {false, true}};
  for (const auto& [prefix_cache, guesses] : kSettings) {
    SchedulerOptions options;
    if (guesses) options.proposer = std::make_shared<RandomProposer>(320);
    options.always_guess = true;
    options.prefill_tokens = 24;
    options.queue_limit = CLIENTS / 2;
    options.prefix_cache = prefix_cache;
    const auto scheduler = MakeScheduler(kTinyModel, 6, 9, options);
    std::vector<std::thread> threads;
    for (int i = 0; i < CLIENTS; ++i) {
      threads.emplace_back([&, i] {
        Client(scheduler.get(), &alone, i).Run(REQUESTS / 2 / CLIENTS);
      });
    }
    for (std::thread& thread : threads) thread.join();
    ExpectNoPagesUsed(*scheduler);
    const SchedulerStats stats = scheduler->GetStats();
    EXPECT_EQ(stats.requests, REQUESTS / 2 / CLIENTS * CLIENTS);
    EXPECT_GT(stats.preemptions, 0);
    EXPECT_GT(stats.cancelled, 0);
    EXPECT_EQ(stats.failed, 0);
    EXPECT_EQ(stats.pages_cached == 0, !prefix_cache);
  }
}

}  // namespace
}  // namespace weft
