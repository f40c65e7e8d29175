// Masks that are not there when the logits are: others go on, and no bit
// changes.
#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "runtime/api/completion.h"
#include "runtime/api/scheduler.h"
#include "tests/runtime/api/serving.h"
#include "text/token_constraint.h"

namespace weft {
namespace {

// Allows all tokens but some. The mask is there when the gate is open and
// Prepare was called `parts` times.
class SlowMask : public TokenConstraint {
 public:
  SlowMask(std::shared_ptr<std::atomic<bool>> open, int parts)
      : open_(std::move(open)), parts_(parts) {}

  bool Prepare(int64_t) override {
    return open_->load() && ++prepared_ > parts_;
  }
  absl::Status Mask(absl::Span<uint64_t> allowed) override {
    EXPECT_TRUE(open_->load());
    std::fill(allowed.begin(), allowed.end(), 0xFEFEFEFEFEFEFEFE);
    return absl::OkStatus();
  }
  absl::Status Accept(int32_t) override {
    prepared_ = 0;
    return absl::OkStatus();
  }
  std::unique_ptr<TokenConstraint> Clone() const override {
    return std::make_unique<SlowMask>(*this);
  }

 private:
  std::shared_ptr<std::atomic<bool>> open_;
  int parts_, prepared_ = 0;
};

// By model: one whose states cannot go back waits where another drops logits.
class SchedulerMasksTest : public ::testing::TestWithParam<const char*> {
 protected:
  Request Constrained(uint32_t seed, int parts) {
    Request request = MakeRequest(RandomPrompt(seed, 30), 40);
    request.sampling.temperature = 1;
    request.sampling.seed = seed;
    request.logprobs = 2;
    request.constraint = std::make_unique<SlowMask>(open_, parts);
    return request;
  }

  const std::shared_ptr<std::atomic<bool>> open_ =
      std::make_shared<std::atomic<bool>>(true);
};

TEST_P(SchedulerMasksTest, LateMasksChangeNoBit) {
  const auto scheduler = MakeScheduler(GetParam(), 4, 0);
  for (const uint32_t seed : {1u, 2u}) {
    Request request = Constrained(seed, 0);
    request.choices = 2;
    const auto at_once = Complete(*scheduler, std::move(request));
    ASSERT_TRUE(at_once.ok()) << at_once.status();
    EXPECT_EQ(at_once->choices[0].tokens.size(), 40u);
    for (const int parts : {1, 2, 50}) {
      // Alone, and beside one that never waits.
      for (const bool alone : {true, false}) {
        RequestId other = 0;
        if (!alone) {
          const auto id = scheduler->Submit(
              MakeRequest(RandomPrompt(9, 50), -1), [](const Event&) {});
          ASSERT_TRUE(id.ok());
          other = *id;
        }
        request = Constrained(seed, parts);
        request.choices = 2;
        const auto late = Complete(*scheduler, std::move(request));
        ASSERT_TRUE(late.ok()) << late.status();
        for (int c = 0; c < 2; ++c) {
          ExpectSame(late->choices[c], at_once->choices[c]);
        }
        if (!alone) scheduler->Cancel(other);
      }
    }
  }
  ExpectNoPagesUsed(*scheduler);
}

TEST_P(SchedulerMasksTest, OthersGoOnWithoutAMask) {
  const auto scheduler = MakeScheduler(GetParam(), 3, 0);
  const auto alone =
      Complete(*scheduler, MakeRequest(RandomPrompt(5, 20), 100));
  ASSERT_TRUE(alone.ok());
  Request request = Constrained(3, 0);
  const auto expected = Complete(*scheduler, std::move(request));
  ASSERT_TRUE(expected.ok());

  open_->store(false);
  absl::Notification ended;
  std::vector<int32_t> ids;
  ASSERT_TRUE(scheduler
                  ->Submit(Constrained(3, 0),
                           [&](const Event& event) {
                             for (const GeneratedToken& token : event.tokens) {
                               ids.push_back(token.id);
                             }
                             if (event.last) ended.Notify();
                           })
                  .ok());
  // It ends while the mask of the other one is never there.
  const auto beside =
      Complete(*scheduler, MakeRequest(RandomPrompt(5, 20), 100));
  ASSERT_TRUE(beside.ok());
  ExpectSame(beside->choices[0], alone->choices[0]);
  EXPECT_FALSE(ended.HasBeenNotified());
  open_->store(true);
  ended.WaitForNotification();
  ASSERT_EQ(ids.size(), expected->choices[0].tokens.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(ids[i], expected->choices[0].tokens[i].id);
  }
  ExpectNoPagesUsed(*scheduler);
}

TEST_P(SchedulerMasksTest, WhoWaitsForAMaskEndsWhenToldTo) {
  open_->store(false);
  auto scheduler = MakeScheduler(GetParam(), 2, 0);
  const auto submit = [&](Request request, FinishReason* reason,
                          absl::Notification* ended) {
    const auto id =
        scheduler->Submit(std::move(request), [=](const Event& event) {
          *reason = event.reason;
          if (event.last) ended->Notify();
        });
    EXPECT_TRUE(id.ok());
    return *id;
  };
  FinishReason reason = FinishReason::kLength;
  absl::Notification cancelled, late, stopped;
  scheduler->Cancel(submit(Constrained(1, 0), &reason, &cancelled));
  cancelled.WaitForNotification();
  EXPECT_EQ(reason, FinishReason::kCancelled);
  Request request = Constrained(1, 0);
  request.deadline = SteadyTimeIn(absl::Milliseconds(20));
  submit(std::move(request), &reason, &late);
  late.WaitForNotification();
  EXPECT_EQ(reason, FinishReason::kDeadline);
  submit(Constrained(1, 0), &reason, &stopped);
  scheduler.reset();
  EXPECT_TRUE(stopped.HasBeenNotified());
}

// Three tokens 20, of which the last two need not be, and then the end.
class UpToThree : public TokenConstraint {
 public:
  explicit UpToThree(int32_t end) : end_(end) {}

  absl::Status Mask(absl::Span<uint64_t> allowed) override {
    std::fill(allowed.begin(), allowed.end(), 0);
    if (count_ < 3) allowed[0] |= uint64_t{1} << 20;
    if (count_ > 0) allowed[0] |= uint64_t{1} << end_;
    return absl::OkStatus();
  }
  absl::Status Accept(int32_t token) override {
    EXPECT_EQ(token, 20);
    ++count_;
    return absl::OkStatus();
  }
  std::unique_ptr<TokenConstraint> Clone() const override {
    return std::make_unique<UpToThree>(*this);
  }

 private:
  int32_t end_;
  int count_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Models, SchedulerMasksTest,
                         ::testing::Values(kTinyModel, kTinyHybrid));

TEST(SchedulerConstraints, WhereAnEndIsIgnoredItComesWhenNothingElseIsAllowed) {
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0);
  const int32_t end = scheduler->tokenizer().eos();
  ASSERT_LT(end, 20);
  for (const bool ignored : {false, true}) {
    Request request = MakeRequest({5}, 10);
    request.stop_at_end_of_text = !ignored;
    request.constraint = std::make_unique<UpToThree>(end);
    // Else the end would never be chosen before it has to be.
    request.logit_bias = {{end, 100.0f}};
    const auto done = Complete(*scheduler, std::move(request));
    ASSERT_TRUE(done.ok()) << done.status();
    EXPECT_EQ(done->choices[0].reason, FinishReason::kEndOfText);
    int64_t count = 0;
    for (const GeneratedToken& token : done->choices[0].tokens) {
      count += token.id == 20;
    }
    EXPECT_EQ(count, ignored ? 3 : 1);
  }
}

}  // namespace
}  // namespace weft
