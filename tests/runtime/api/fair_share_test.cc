// Whose turn it is.
#include "runtime/generation/fair_share.h"

#include <map>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/runtime/api/serving.h"

namespace weft {
namespace {

TEST(FairShareTest, WhoHadLeastGoesFirst) {
  FairShare shares;
  const auto a = shares.Join(1, 0, 10, 2);
  const auto b = shares.Join(2, 0, 11, 2);
  EXPECT_FALSE(FairShare::Precedes(a, b));
  EXPECT_FALSE(FairShare::Precedes(b, a));
  FairShare::Served(a, 5);
  EXPECT_TRUE(FairShare::Precedes(b, a));
  FairShare::Served(b, 6);
  EXPECT_TRUE(FairShare::Precedes(a, b));
  // A third begins at what the least served has had, not at nothing.
  const auto c = shares.Join(3, 0, 12, 1);
  EXPECT_EQ(c.client->served, 5);
}

TEST(FairShareTest, TasksOfAClientShareItsPart) {
  FairShare shares;
  const auto large = shares.Join(1, 0, 10, 16);
  const auto small = shares.Join(1, 0, 11, 1);
  const auto same = shares.Join(1, 7, 12, 3);
  const auto again = shares.Join(1, 7, 13, 3);
  EXPECT_EQ(same.task, again.task);
  EXPECT_EQ(same.task->open, 6);
  // The one of few texts, while none has had more.
  EXPECT_TRUE(FairShare::Precedes(small, large));
  FairShare::Served(small, 1);
  EXPECT_TRUE(FairShare::Precedes(large, small));
  for (int i = 0; i < 3; ++i) shares.Leave(same);
  EXPECT_EQ(again.task->open, 3);
}

TEST(FairShareTest, SlotsGoOverWhereThatGainsSomething) {
  FairShare shares;
  const auto large = shares.Join(1, 0, 10, 16);
  const auto equal = shares.Join(1, 0, 11, 16);
  const auto small = shares.Join(1, 0, 12, 1);
  const auto other = shares.Join(2, 0, 13, 16);
  FairShare::Started(large);
  FairShare::Served(large, 1);
  EXPECT_FALSE(FairShare::MayReplace(equal, large));  // one slot each
  EXPECT_FALSE(FairShare::MayReplace(small, large));  // not yet far behind
  EXPECT_FALSE(FairShare::MayReplace(other, large));
  FairShare::Served(large, FairShare::kTurnTokens);
  EXPECT_FALSE(FairShare::MayReplace(equal, large));
  EXPECT_TRUE(FairShare::MayReplace(small, large));
  EXPECT_TRUE(FairShare::MayReplace(other, large));
  EXPECT_FALSE(FairShare::MayReplace(large, large));
  FairShare::Started(large);
  EXPECT_TRUE(FairShare::MayReplace(equal, large));  // of two slots, one
  // Not back again.
  FairShare::Stopped(large);
  FairShare::Started(equal);
  EXPECT_FALSE(FairShare::MayReplace(large, equal));
}

// Lets a flood come first, then a small request, and tells how many tokens of
// others were made before the small one was done.
int64_t TokensBefore(Scheduler& scheduler, int requests, int choices,
                     int64_t length, uint64_t client) {
  absl::Notification hold, done;
  int64_t others = 0, before = -1;
  int ended = 0;
  // All are in the queue before the second step.
  Request first = MakeRequest({20}, 2);
  EXPECT_TRUE(scheduler
                  .Submit(std::move(first),
                          [&](const Event& event) {
                            if (event.last) hold.WaitForNotification();
                          })
                  .ok());
  for (int i = 0; i < requests; ++i) {
    Request request = MakeRequest(RandomPrompt(i, 30), length);
    request.choices = choices;
    request.client = 1;
    EXPECT_TRUE(scheduler
                    .Submit(std::move(request),
                            [&](const Event& event) {
                              others +=
                                  static_cast<int64_t>(event.tokens.size());
                              ended += event.last;
                            })
                    .ok());
  }
  Request small = MakeRequest(RandomPrompt(1000, 10), 8);
  small.client = client;
  EXPECT_TRUE(scheduler
                  .Submit(std::move(small),
                          [&](const Event& event) {
                            if (!event.last) return;
                            before = others;
                            done.Notify();
                          })
                  .ok());
  hold.Notify();
  done.WaitForNotification();
  scheduler.Drain(absl::InfiniteDuration());
  EXPECT_EQ(ended, requests);
  EXPECT_EQ(others, requests * choices * length);
  return before;
}

TEST(FairShareTest, ManyLargeRequestsDoNotStarveASmallOne) {
  // All of one client: there is nothing but the requests' own sizes.
  const int64_t length = 40;
  const auto same = MakeScheduler(kTinyModel, 4, 0);
  EXPECT_LT(TokensBefore(*same, 66, 16, length, 1), 8 * length);
  ExpectNoPagesUsed(*same);
  // Of two: also where the small one has to take a slot.
  const auto two = MakeScheduler(kTinyModel, 4, 0);
  EXPECT_LT(TokensBefore(*two, 10, 4, 400, 2), 400);
  ExpectNoPagesUsed(*two);
}

// Two clients, one with ten times as many requests: each gets half.
TEST(FairShareTest, ClientsGetEqualShares) {
  const auto scheduler = MakeScheduler(kTinyModel, 4, 0);
  std::map<uint64_t, int64_t> served;
  std::map<uint64_t, int> left = {{1, 40}, {2, 4}};
  bool both = true;
  const auto submit = [&](uint64_t client, uint32_t seed) {
    Request request = MakeRequest(RandomPrompt(seed, 20), 200);
    request.client = client;
    EXPECT_TRUE(scheduler
                    ->Submit(std::move(request),
                             [&, client](const Event& event) {
                               if (both) served[client] += event.tokens.size();
                               if (event.last && --left[client] == 0) {
                                 both = false;
                               }
                             })
                    .ok());
  };
  for (uint32_t i = 0; i < 40; ++i) submit(1, i);
  for (uint32_t i = 0; i < 4; ++i) submit(2, 100 + i);
  ExpectNoPagesUsed(*scheduler);
  EXPECT_EQ(served[2], 800);
  EXPECT_LT(served[1], 1400);
  EXPECT_GT(served[1], 500);
}

// Few pages, many clients, turns that change all the time: everything ends, and
// is what it is alone.
TEST(FairShareTest, TurnsChangeNoBitAndEverythingEnds) {
  const auto alone = MakeScheduler(kTinyModel, 1, 0);
  for (const bool cache : {true, false}) {
    SchedulerOptions options;
    options.prefix_cache = cache;
    const auto scheduler = MakeScheduler(MakeEngine(kTinyModel, 3, 9), options);
    const auto request = [](int i) {
      Request request = MakeRequest(RandomPrompt(i, 20 + 11 * (i % 7)), 150);
      request.sampling.temperature = 0.9f;
      request.sampling.seed = i;
      request.logprobs = 1;
      request.client = i % 5;
      request.choices = 1 + i % 3;
      return request;
    };
    std::vector<std::future<absl::StatusOr<Completion>>> results;
    for (int i = 0; i < 15; ++i) {
      auto result = SubmitForResult(*scheduler, request(i));
      ASSERT_TRUE(result.ok()) << result.status();
      results.push_back(*std::move(result));
    }
    for (int i = 0; i < 15; ++i) {
      const auto found = results[i].get();
      const auto expected = Complete(*alone, request(i));
      ASSERT_TRUE(found.ok() && expected.ok());
      for (size_t c = 0; c < expected->choices.size(); ++c) {
        ExpectSame(found->choices[c], expected->choices[c]);
      }
    }
    EXPECT_GT(scheduler->GetStats().preemptions, 0);
    ExpectNoPagesUsed(*scheduler);
  }
}

}  // namespace
}  // namespace weft
