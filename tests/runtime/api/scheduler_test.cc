// What requests may ask, and what becomes of them.
#include "runtime/api/scheduler.h"

#include <cmath>
#include <future>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/api/serving.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

Completion Result(Scheduler& scheduler, Request request) {
  auto completion = Complete(scheduler, std::move(request));
  EXPECT_TRUE(completion.ok()) << completion.status();
  return completion.ok() ? *std::move(completion) : Completion{{{}}, {}};
}

std::vector<int32_t> Ids(const ChoiceResult& choice) {
  std::vector<int32_t> ids;
  for (const GeneratedToken& token : choice.tokens) ids.push_back(token.id);
  return ids;
}

TEST(SchedulerTest, EventsJoinToTheResultAndEndOnce) {
  const auto scheduler = MakeScheduler("", 2, 0);
  const auto prompt = scheduler->tokenizer().Encode("It is a truth", {});
  ASSERT_TRUE(prompt.ok());
  const Completion whole = Result(*scheduler, MakeRequest(*prompt, 20));
  EXPECT_EQ(whole.choices[0].reason, FinishReason::kLength);
  EXPECT_EQ(whole.choices[0].tokens.size(), 20u);
  EXPECT_EQ(whole.usage.completion_tokens, 20);
  EXPECT_GT(whole.usage.first_token_seconds, 0);

  const auto queue = std::make_shared<EventQueue>();
  Request request = MakeRequest(*prompt, 20);
  request.choices = 2;
  const auto id = scheduler->Submit(std::move(request), queue->Callback());
  ASSERT_TRUE(id.ok());
  std::vector<std::string> texts(2);
  int finished = 0, last = 0;
  Event event;
  while (queue->Next(absl::InfiniteDuration(), &event)) {
    EXPECT_EQ(event.request, *id);
    EXPECT_EQ(last, 0);
    texts[event.choice] += event.text;
    finished += event.finished;
    last += event.last;
  }
  EXPECT_TRUE(queue->done());
  EXPECT_EQ(finished, 2);
  EXPECT_EQ(last, 1);
  EXPECT_EQ(texts[0], whole.choices[0].text);
  EXPECT_EQ(texts[1], whole.choices[0].text);
  ExpectNoPagesUsed(*scheduler);
}

TEST(SchedulerTest, RefusesWhatCannotBeRunAndSaysWhy) {
  const auto scheduler = MakeScheduler(kTinyModel, 1, 4);
  EXPECT_EQ(scheduler->capacity(), 256);
  const auto refusal = [&](auto change) {
    Request request = MakeRequest({20, 21}, 5);
    change(request);
    const auto id = scheduler->Submit(std::move(request), nullptr);
    EXPECT_FALSE(id.ok());
    return std::string(id.status().message());
  };
  EXPECT_THAT(refusal([](Request& r) { r.prompt_tokens.clear(); }),
              HasSubstr("prompt_tokens"));
  EXPECT_THAT(refusal([](Request& r) { r.prompt_tokens[1] = 320; }),
              HasSubstr("320"));
  EXPECT_THAT(refusal([](Request& r) { r.prompt_tokens[1] = -1; }),
              HasSubstr("prompt_tokens: -1"));
  const std::string long_prompt =
      refusal([](Request& r) { r.prompt_tokens.assign(257, 20); });
  EXPECT_THAT(long_prompt, HasSubstr("257 tokens"));
  EXPECT_THAT(long_prompt, HasSubstr("256 positions"));
  EXPECT_THAT(refusal([](Request& r) { r.min_tokens = -1; }),
              HasSubstr("min_tokens"));
  EXPECT_THAT(refusal([](Request& r) { r.min_tokens = 6; }),
              HasSubstr("at most max_tokens, 5"));
  EXPECT_THAT(refusal([](Request& r) { r.shift_keep = -1; }),
              HasSubstr("shift_keep: -1"));
  EXPECT_THAT(refusal([](Request& r) { r.embed = true; }),
              HasSubstr("embed: llama writes text"));
  EXPECT_THAT(refusal([](Request& r) { r.choices = 0; }),
              HasSubstr("choices: 0"));
  EXPECT_THAT(refusal([](Request& r) { r.choices = 1000; }),
              HasSubstr("choices: 1000"));
  EXPECT_THAT(refusal([](Request& r) { r.logprobs = 101; }),
              HasSubstr("logprobs: 101"));
  EXPECT_THAT(refusal([](Request& r) {
                r.logit_bias = {{320, 1.f}};
              }),
              HasSubstr("logit_bias: 320"));
  for (const float bias : {std::nanf(""), HUGE_VALF}) {
    EXPECT_THAT(refusal([&](Request& r) {
                  r.logit_bias = {{20, bias}};
                }),
                HasSubstr("logit_bias"));
  }
  EXPECT_THAT(refusal([](Request& r) {
                r.stop_strings = {"a", ""};
              }),
              HasSubstr("stop_strings: 0 bytes"));
  EXPECT_THAT(refusal([](Request& r) { r.stop_strings.resize(65, "a"); }),
              HasSubstr("stop_strings: 65"));
  EXPECT_THAT(refusal([](Request& r) { r.stop_tokens = {-5}; }),
              HasSubstr("stop_tokens: -5"));
  EXPECT_THAT(refusal([](Request& r) { r.sampling.top_p = 2; }),
              HasSubstr("top_p: 2"));
  EXPECT_EQ(scheduler->GetStats().requests, 0);
  // The longest that can be run.
  const Completion longest =
      Result(*scheduler, MakeRequest(std::vector<int32_t>(256, 20), -1));
  EXPECT_EQ(longest.choices[0].tokens.size(), 1u);
  EXPECT_EQ(longest.choices[0].reason, FinishReason::kContext);
}

// Event::prompt of a request, joined.
std::vector<GeneratedToken> PromptTold(Scheduler& scheduler, Request request,
                                       Usage* usage = nullptr) {
  const auto queue = std::make_shared<EventQueue>();
  EXPECT_TRUE(scheduler.Submit(std::move(request), queue->Callback()).ok());
  std::vector<GeneratedToken> told;
  Event event;
  while (queue->Next(absl::InfiniteDuration(), &event)) {
    EXPECT_TRUE(event.status.ok()) << event.status;
    told.insert(told.end(), event.prompt.begin(), event.prompt.end());
    if (event.last && usage != nullptr) *usage = event.usage;
  }
  return told;
}

TEST(SchedulerTest, LogprobsOfAPromptAreThoseOfItsTokensAsAText) {
  SchedulerOptions options;
  options.prompt_logprob_rows = 5;
  for (const char* model : {kTinyModel, kTinyHybrid}) {
    SCOPED_TRACE(model);
    const auto scheduler = MakeScheduler(model, 3, 0, options);
    Request text = MakeRequest({20, 21, 22}, 60);
    text.logprobs = 2;
    text.stop_at_end_of_text = false;
    const Completion whole = Result(*scheduler, std::move(text));
    Request request = MakeRequest({20, 21, 22}, 0);
    for (const int32_t id : Ids(whole.choices[0])) {
      request.prompt_tokens.push_back(id);
    }
    request.prompt_logprobs = 2;
    Usage usage;
    // Beside others, and what it is made of is in the cache.
    const auto beside = std::make_shared<EventQueue>();
    ASSERT_TRUE(
        scheduler->Submit(MakeRequest({30, 31}, 40), beside->Callback()).ok());
    Request other = MakeRequest(request.prompt_tokens, 1);
    other.prompt_logprobs = 0;
    ASSERT_TRUE(scheduler->Submit(std::move(other), beside->Callback()).ok());
    const std::vector<GeneratedToken> told =
        PromptTold(*scheduler, std::move(request), &usage);
    ASSERT_EQ(told.size(), 63u);
    EXPECT_EQ(usage.cached_tokens, 0);
    EXPECT_EQ(usage.completion_tokens, 0);
    EXPECT_EQ(usage.processed_tokens, 63);
    for (size_t i = 0; i < 60; ++i) {
      const GeneratedToken& then = whole.choices[0].tokens[i];
      EXPECT_EQ(told[3 + i].id, then.id);
      EXPECT_EQ(told[3 + i].logprob, then.logprob) << i;
      ASSERT_EQ(told[3 + i].top.size(), 2u);
      EXPECT_EQ(told[3 + i].top[1].logprob, then.top[1].logprob) << i;
    }
    Event event;
    while (beside->Next(absl::InfiniteDuration(), &event)) {
    }
    Request one = MakeRequest({20}, 0);
    one.prompt_logprobs = 0;
    EXPECT_EQ(PromptTold(*scheduler, std::move(one)).size(), 1u);
    ExpectNoPagesUsed(*scheduler);
  }
  const auto without = MakeScheduler(kTinyModel, 1, 0);
  Request refused = MakeRequest({20, 21}, 0);
  refused.prompt_logprobs = 0;
  EXPECT_FALSE(without->Submit(std::move(refused), nullptr).ok());
}

TEST(SchedulerTest, ProgressIsToldStepByStep) {
  SchedulerOptions options;
  options.prefill_tokens_alone = 8;
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0, options);
  const auto queue = std::make_shared<EventQueue>();
  Request request = MakeRequest(RandomPrompt(7, 30), 1);
  request.tell_progress = true;
  ASSERT_TRUE(scheduler->Submit(std::move(request), queue->Callback()).ok());
  std::vector<int64_t> processed;
  Event event;
  while (queue->Next(absl::InfiniteDuration(), &event)) {
    processed.push_back(event.usage.processed_tokens);
  }
  EXPECT_EQ(processed, (std::vector<int64_t>{8, 16, 24, 30}));
}

TEST(SchedulerTest, AnEndIsToldWhereItIsAskedFor) {
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0);
  for (const bool tell : {false, true}) {
    Request request = MakeRequest({20, 21}, 5);
    request.stop_tokens = {40};
    request.logit_bias = {{40, 1000.f}};
    request.tell_end = tell;
    const Completion result = Result(*scheduler, std::move(request));
    EXPECT_EQ(result.choices[0].reason, FinishReason::kStopToken);
    EXPECT_EQ(result.choices[0].tokens.size(), tell ? 1u : 0u);
  }
}

TEST(SchedulerTest, AQueueDoesNotWaitForARequestThatWasRefused) {
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0);
  const auto queue = std::make_shared<EventQueue>();
  EXPECT_FALSE(scheduler->Submit(MakeRequest({}, 5), queue->Callback()).ok());
  Event event;
  EXPECT_FALSE(queue->Next(absl::InfiniteDuration(), &event));
  EXPECT_TRUE(queue->done());
  ASSERT_TRUE(scheduler->Submit(MakeRequest({20}, 1), queue->Callback()).ok());
  EXPECT_TRUE(queue->Next(absl::InfiniteDuration(), &event));
  EXPECT_TRUE(event.last);
  EXPECT_FALSE(queue->Next(absl::InfiniteDuration(), &event));

  Request request = MakeRequest({20}, 5);
  request.choices = std::numeric_limits<int>::max();
  EXPECT_FALSE(Complete(*scheduler, std::move(request)).ok());
}

TEST(SchedulerTest, RefusesOptionsThatCannotBe) {
  const auto create = [](int slots, SchedulerOptions options) {
    EngineOptions engine_options;
    engine_options.slots = slots;
    engine_options.model.compile.buckets = {1, 8};
    auto engine = Engine::Load(kTinyModel, engine_options);
    EXPECT_TRUE(engine.ok());
    return std::string(
        Scheduler::Create(*std::move(engine), options).status().message());
  };
  EXPECT_EQ(create(8, {}), "");
  EXPECT_THAT(create(9, {}), HasSubstr("too many sequences: 9"));
  SchedulerOptions options;
  options.prefill_tokens = 0;
  EXPECT_THAT(create(1, options), HasSubstr("prefill_tokens: 0"));
  options = {};
  options.queue_limit = -1;
  EXPECT_THAT(create(1, options), HasSubstr("queue_limit: -1"));
}

TEST(SchedulerTest, TextEndsWithTheContext) {
  const auto scheduler = MakeScheduler(kTinyModel, 1, 2);
  const Completion completion =
      Result(*scheduler, MakeRequest(RandomPrompt(1, 100), -1));
  EXPECT_EQ(completion.choices[0].reason, FinishReason::kContext);
  // 128 positions, and the token that is drawn from the full context.
  EXPECT_EQ(completion.choices[0].tokens.size(), 29u);
}

TEST(SchedulerTest, NoTokensWantedIsAnEmptyText) {
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0);
  Request request = MakeRequest({20}, 0);
  request.choices = 3;
  const Completion completion = Result(*scheduler, std::move(request));
  for (const ChoiceResult& choice : completion.choices) {
    EXPECT_EQ(choice.reason, FinishReason::kLength);
    EXPECT_TRUE(choice.tokens.empty());
  }
  EXPECT_EQ(completion.usage.completion_tokens, 0);
  ExpectNoPagesUsed(*scheduler);
}

TEST(SchedulerTest, StopStringsEndTheTextBeforeThemAcrossTokens) {
  const auto scheduler = MakeScheduler("", 1, 0);
  const auto prompt = scheduler->tokenizer().Encode("It is a truth", {});
  ASSERT_TRUE(prompt.ok());
  const ChoiceResult free =
      Result(*scheduler, MakeRequest(*prompt, 24)).choices[0];
  // Every part of the text of up to 12 bytes, wherever tokens end.
  for (size_t length : {1, 2, 5, 12}) {
    for (size_t begin = 0; begin + length <= free.text.size(); begin += 3) {
      const std::string stop = free.text.substr(begin, length);
      const size_t first = free.text.find(stop);
      Request request = MakeRequest(*prompt, 24);
      request.stop_strings = {"never there", stop};
      const auto queue = std::make_shared<EventQueue>();
      ASSERT_TRUE(
          scheduler->Submit(std::move(request), queue->Callback()).ok());
      std::string text, of_tokens;
      Event event;
      while (queue->Next(absl::InfiniteDuration(), &event)) {
        text += event.text;
        // Never more than what stays, at any time.
        ASSERT_EQ(text, free.text.substr(0, text.size()));
        for (const GeneratedToken& token : event.tokens) {
          of_tokens +=
              std::string(scheduler->tokenizer().TokenToBytes(token.id));
        }
      }
      EXPECT_EQ(event.reason, FinishReason::kStopString);
      EXPECT_EQ(event.stop_string, 1);
      EXPECT_EQ(text, free.text.substr(0, first)) << stop;
      // The tokens that are told reach to the end of the text, not further than
      // the one in which the stop string begins.
      EXPECT_GE(of_tokens.size(), text.size());
      EXPECT_EQ(of_tokens.substr(0, text.size()), text);
    }
  }
}

// With the token that makes them enough, stop strings count: not one later.
TEST(SchedulerTest, StopStringsEndTheTextFromTheLastTokenOfTheLeast) {
  const auto scheduler = MakeScheduler("", 1, 0);
  const auto prompt = scheduler->tokenizer().Encode("It is a truth", {});
  ASSERT_TRUE(prompt.ok());
  const Completion whole = Result(*scheduler, MakeRequest(*prompt, 8));
  const std::vector<GeneratedToken>& tokens = whole.choices[0].tokens;
  for (int64_t least = 1; least <= 8; ++least) {
    Request request = MakeRequest(*prompt, 8);
    request.min_tokens = least;
    const std::string piece(
        scheduler->tokenizer().TokenToBytes(tokens[least - 1].id));
    request.stop_strings = {piece};
    const Completion stopped = Result(*scheduler, std::move(request));
    EXPECT_EQ(stopped.choices[0].reason, FinishReason::kStopString) << least;
    EXPECT_EQ(stopped.usage.completion_tokens, least);
    // One token sooner it may not end the text.
    if (least == 8) continue;
    Request later = MakeRequest(*prompt, least + 1);
    later.min_tokens = least + 1;
    later.stop_strings = {piece};
    EXPECT_EQ(Result(*scheduler, std::move(later)).usage.completion_tokens,
              least + 1);
  }
}

TEST(SchedulerTest, TextThatOnlyBeginsLikeAStopStringIsNotLost) {
  const auto scheduler = MakeScheduler("", 1, 0);
  const auto prompt = scheduler->tokenizer().Encode("It is a truth", {});
  const ChoiceResult free =
      Result(*scheduler, MakeRequest(*prompt, 24)).choices[0];
  Request request = MakeRequest(*prompt, 24);
  request.stop_strings = {free.text.substr(free.text.size() - 7) + "\x01",
                          free.text.substr(3, 9) + "\x01"};
  const ChoiceResult choice = Result(*scheduler, std::move(request)).choices[0];
  EXPECT_EQ(choice.reason, FinishReason::kLength);
  EXPECT_EQ(choice.text, free.text);
  EXPECT_EQ(Ids(choice), Ids(free));
}

TEST(SchedulerTest, StopTokensAndEndOfTextEndTheText) {
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0);
  const std::vector<int32_t> prompt = RandomPrompt(3, 10);
  const std::vector<int32_t> ids =
      Ids(Result(*scheduler, MakeRequest(prompt, 20)).choices[0]);
  Request request = MakeRequest(prompt, 20);
  request.stop_tokens = {ids[5]};
  ChoiceResult choice = Result(*scheduler, std::move(request)).choices[0];
  const auto first = std::find(ids.begin(), ids.end(), ids[5]);
  EXPECT_EQ(choice.reason, FinishReason::kStopToken);
  EXPECT_EQ(Ids(choice), std::vector<int32_t>(ids.begin(), first));

  const int32_t eos = scheduler->tokenizer().eos();
  ASSERT_GE(eos, 0);
  for (const float temperature : {0.f, 1.f}) {
    request = MakeRequest(prompt, 20);
    request.sampling.temperature = temperature;
    request.stop_at_end_of_text = true;
    request.logit_bias = {{eos, 1000.f}};
    Completion completion = Result(*scheduler, std::move(request));
    EXPECT_EQ(completion.choices[0].reason, FinishReason::kEndOfText);
    EXPECT_TRUE(completion.choices[0].tokens.empty());
    EXPECT_EQ(completion.usage.completion_tokens, 1);
    // Not before the least number of tokens.
    request = MakeRequest(prompt, 20);
    request.sampling.temperature = temperature;
    request.stop_at_end_of_text = true;
    request.logit_bias = {{eos, 1000.f}};
    request.min_tokens = 4;
    completion = Result(*scheduler, std::move(request));
    EXPECT_EQ(completion.choices[0].reason, FinishReason::kEndOfText);
    EXPECT_EQ(completion.choices[0].tokens.size(), 4u);
  }
  // A stop string is not looked for before either.
  request = MakeRequest(prompt, 20);
  request.stop_strings.emplace_back(
      scheduler->tokenizer().TokenToBytes(ids[0]));
  request.min_tokens = 3;
  choice = Result(*scheduler, std::move(request)).choices[0];
  EXPECT_GE(choice.tokens.size(), 2u);
}

TEST(SchedulerTest, BiasForbidsAndForcesButLogprobsAreTheModelsOwn) {
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0);
  const std::vector<int32_t> prompt = RandomPrompt(4, 10);
  Request request = MakeRequest(prompt, 1);
  request.logprobs = 5;
  const ChoiceResult free = Result(*scheduler, std::move(request)).choices[0];
  const GeneratedToken& best = free.tokens[0];
  ASSERT_EQ(best.top.size(), 5u);
  EXPECT_EQ(best.top[0].token, best.id);
  EXPECT_TRUE(SameNumber(best.top[0].logprob, best.logprob));
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_GE(best.top[i - 1].logprob, best.top[i].logprob);
  }
  for (const float temperature : {0.f, 0.7f}) {
    request = MakeRequest(prompt, 1);
    request.logprobs = 5;
    request.sampling.temperature = temperature;
    request.sampling.frequency_penalty = 1;
    request.logit_bias = {{best.id, -HUGE_VALF}, {best.top[3].token, 100.f}};
    const ChoiceResult biased =
        Result(*scheduler, std::move(request)).choices[0];
    EXPECT_EQ(biased.tokens[0].id, best.top[3].token);
    EXPECT_TRUE(SameNumber(biased.tokens[0].logprob, best.top[3].logprob));
    EXPECT_EQ(biased.tokens[0].top[0].token, best.id);
  }
}

// Allows a fixed list of tokens, one after the other, then the end.
class FixedTokens : public TokenConstraint {
 public:
  FixedTokens(std::vector<int32_t> tokens, int32_t end)
      : tokens_(std::move(tokens)), end_(end) {}

  absl::Status Mask(absl::Span<uint64_t> allowed) override {
    std::fill(allowed.begin(), allowed.end(), 0);
    const int32_t id = next_ < tokens_.size() ? tokens_[next_] : end_;
    if (id >= 0) allowed[id / 64] |= uint64_t{1} << id % 64;
    return absl::OkStatus();
  }
  absl::Status Accept(int32_t token) override {
    if (token != tokens_[next_]) return absl::InternalError("not allowed");
    ++next_;
    return absl::OkStatus();
  }
  std::unique_ptr<TokenConstraint> Clone() const override {
    return std::make_unique<FixedTokens>(*this);
  }

 private:
  std::vector<int32_t> tokens_;
  int32_t end_;
  size_t next_ = 0;
};

TEST(SchedulerTest, AConstraintDecidesEveryTokenOfEveryChoice) {
  const auto scheduler = MakeScheduler(kTinyModel, 2, 0);
  const std::vector<int32_t> wanted = {50, 319, 63, 64, 50};
  Request request = MakeRequest(RandomPrompt(4, 10), 50);
  request.stop_at_end_of_text = true;
  request.choices = 3;
  request.min_tokens = 10;  // gives way where nothing else is allowed
  request.sampling.temperature = 1;
  request.constraint =
      std::make_unique<FixedTokens>(wanted, scheduler->tokenizer().eos());
  const Completion completion = Result(*scheduler, std::move(request));
  for (const ChoiceResult& choice : completion.choices) {
    EXPECT_EQ(Ids(choice), wanted);
    EXPECT_EQ(choice.reason, FinishReason::kEndOfText);
  }
  // Nothing allowed: an error of this request, and of no other.
  request = MakeRequest(RandomPrompt(4, 10), 50);
  request.constraint = std::make_unique<FixedTokens>(wanted, -1);
  EXPECT_FALSE(Complete(*scheduler, std::move(request)).ok());
  EXPECT_EQ(scheduler->GetStats().failed, 1);
  Result(*scheduler, MakeRequest({20}, 3));
  ExpectNoPagesUsed(*scheduler);
}

TEST(SchedulerTest, CancelEndsWaitingAndRunningRequests) {
  SchedulerOptions options;
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0, options);
  const auto queue = std::make_shared<EventQueue>();
  std::vector<RequestId> ids;
  for (int i = 0; i < 3; ++i) {
    Request request = MakeRequest(RandomPrompt(i, 20), -1);
    const auto id = scheduler->Submit(std::move(request), queue->Callback());
    ASSERT_TRUE(id.ok());
    ids.push_back(*id);
  }
  Event event;
  ASSERT_TRUE(queue->Next(absl::InfiniteDuration(), &event));
  EXPECT_TRUE(scheduler->Cancel(ids[0]));
  EXPECT_TRUE(scheduler->Cancel(ids[2]));
  std::map<RequestId, FinishReason> reasons;
  do {
    if (event.last) reasons[event.request] = event.reason;
  } while (queue->Next(absl::InfiniteDuration(), &event));
  EXPECT_EQ(reasons[ids[0]], FinishReason::kCancelled);
  EXPECT_EQ(reasons[ids[1]], FinishReason::kContext);
  EXPECT_EQ(reasons[ids[2]], FinishReason::kCancelled);
  ExpectNoPagesUsed(*scheduler);
  EXPECT_FALSE(scheduler->Cancel(ids[1]));
  EXPECT_FALSE(scheduler->Cancel(12345));
  EXPECT_EQ(scheduler->GetStats().cancelled, 2);
}

TEST(SchedulerTest, CallbacksMayCancelAndSubmit) {
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0);
  const auto second = std::make_shared<EventQueue>();
  const EventCallback callback = second->Callback();
  const auto first = scheduler->Submit(
      MakeRequest(RandomPrompt(1, 20), -1), [&](const Event& event) {
        if (event.usage.completion_tokens == 3 && !event.finished) {
          EXPECT_TRUE(scheduler->Cancel(event.request));
          EXPECT_TRUE(scheduler->Submit(MakeRequest({20}, 2), callback).ok());
        }
        EXPECT_LE(event.usage.completion_tokens, 3);
      });
  ASSERT_TRUE(first.ok());
  Event event;
  while (second->Next(absl::InfiniteDuration(), &event)) {
  }
  EXPECT_EQ(event.reason, FinishReason::kLength);
  ExpectNoPagesUsed(*scheduler);
}

TEST(SchedulerTest, AFullQueueRefusesWithBothNumbers) {
  SchedulerOptions options;
  options.queue_limit = 2;
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0, options);
  // The first blocks the scheduler's thread until the queue has been tried.
  absl::Notification running, tried;
  ASSERT_TRUE(scheduler
                  ->Submit(MakeRequest({20}, 3),
                           [&](const Event&) {
                             if (!running.HasBeenNotified()) running.Notify();
                             tried.WaitForNotification();
                           })
                  .ok());
  running.WaitForNotification();
  EXPECT_TRUE(scheduler->Submit(MakeRequest({21}, 3), nullptr).ok());
  EXPECT_TRUE(scheduler->Submit(MakeRequest({22}, 3), nullptr).ok());
  const auto refused = scheduler->Submit(MakeRequest({23}, 3), nullptr);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("2 requests wait, at most 2 may"));
  tried.Notify();
  ExpectNoPagesUsed(*scheduler);
  EXPECT_EQ(scheduler->GetStats().refused, 1);
  EXPECT_EQ(scheduler->GetStats().finished, 3);
}

TEST(SchedulerTest, AClientThatFillsItsPartOfTheQueueLeavesRoomForOthers) {
  SchedulerOptions options;
  options.queue_limit = 4;
  options.client_queue_limit = 2;
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0, options);
  // The first blocks the scheduler's thread until the queue has been tried.
  absl::Notification running, tried;
  ASSERT_TRUE(scheduler
                  ->Submit(MakeRequest({20}, 3),
                           [&](const Event&) {
                             if (!running.HasBeenNotified()) running.Notify();
                             tried.WaitForNotification();
                           })
                  .ok());
  running.WaitForNotification();
  const auto submit = [&](uint64_t client) {
    Request request = MakeRequest({21}, 3);
    request.client = client;
    return scheduler->Submit(std::move(request), nullptr).status();
  };
  EXPECT_TRUE(submit(7).ok());
  EXPECT_TRUE(submit(7).ok());
  const absl::Status refused = submit(7);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("2 requests of this client wait, at most 2 may"));
  EXPECT_TRUE(submit(8).ok());
  EXPECT_TRUE(submit(0).ok());  // whoever says nothing has no part
  EXPECT_THAT(std::string(submit(9).message()), HasSubstr("queue is full: 4"));
  EXPECT_EQ(scheduler->GetStats().refused, 2);
  tried.Notify();
  // Whoever has run waits no longer.
  while (!submit(7).ok()) absl::SleepFor(absl::Milliseconds(1));
  ExpectNoPagesUsed(*scheduler);
}

TEST(SchedulerTest, DeadlinesEndWaitingAndRunningRequests) {
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0);
  // One that is over when it comes, one that passes while it runs.
  Request late = MakeRequest({20}, 5);
  late.deadline = SteadyTimeIn(-absl::Seconds(1));
  const Completion nothing = Result(*scheduler, std::move(late));
  EXPECT_EQ(nothing.choices[0].reason, FinishReason::kDeadline);
  EXPECT_TRUE(nothing.choices[0].tokens.empty());
  Request slow = MakeRequest({20}, 500);
  slow.deadline = SteadyTimeIn(absl::Milliseconds(200));
  const SteadyTime deadline = slow.deadline;
  int tokens = 0;
  FinishReason reason;
  ASSERT_TRUE(scheduler
                  ->Submit(std::move(slow),
                           [&](const Event& event) {
                             ++tokens;
                             reason = event.reason;
                             if (tokens == 3) {
                               std::this_thread::sleep_until(
                                   deadline + std::chrono::milliseconds(1));
                             }
                           })
                  .ok());
  ExpectNoPagesUsed(*scheduler);
  EXPECT_EQ(reason, FinishReason::kDeadline);
  EXPECT_LE(tokens, 4);
}

TEST(SchedulerTest, DrainWaitsThenCancelsAndAcceptsNoMore) {
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0);
  bool ended = false;
  ASSERT_TRUE(scheduler
                  ->Submit(MakeRequest({20}, 5),
                           [&](const Event& event) { ended = event.last; })
                  .ok());
  EXPECT_EQ(scheduler->Drain(absl::InfiniteDuration()), 0);
  EXPECT_TRUE(ended);
  EXPECT_EQ(scheduler->Submit(MakeRequest({20}, 5), nullptr).status().code(),
            absl::StatusCode::kUnavailable);

  const auto other = MakeScheduler(kTinyModel, 1, 0);
  FinishReason reason = FinishReason::kLength;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(other
                    ->Submit(MakeRequest({20}, -1),
                             [&](const Event& event) { reason = event.reason; })
                    .ok());
  }
  EXPECT_EQ(other->Drain(absl::ZeroDuration()), 3);
  EXPECT_EQ(reason, FinishReason::kCancelled);
}

TEST(SchedulerTest, DestructionTellsTheEndOfEveryRequest) {
  int last = 0;
  {
    const auto scheduler = MakeScheduler(kTinyModel, 2, 0);
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(scheduler
                      ->Submit(MakeRequest(RandomPrompt(i, 300), -1),
                               [&](const Event& event) { last += event.last; })
                      .ok());
    }
  }
  EXPECT_EQ(last, 5);
}

// A stream goes on with one token in every step, and no step of its has more
// prompt tokens than it may, while long prompts are taken in.
TEST(SchedulerTest, ALongPromptStallsNoStreamForMoreThanOneChunk) {
  SchedulerOptions options;
  options.prefill_tokens = 16;
  const auto scheduler = MakeScheduler(kTinyModel, 3, 0, options);
  int64_t steps = 0, prefilled = 0, most = 0, with_prompt = 0;
  int events = 0;
  absl::Notification ended;
  const auto watch = [&](const Event& event) {
    const SchedulerStats stats = scheduler->GetStats();
    if (events++ > 0) {
      EXPECT_EQ(stats.steps, steps + 1);
      most = std::max(most, stats.prefill_tokens - prefilled);
      with_prompt += stats.prefill_tokens > prefilled;
    }
    steps = stats.steps;
    prefilled = stats.prefill_tokens;
    for (int i = 0; i < 2 && events == 5; ++i) {
      EXPECT_TRUE(
          scheduler->Submit(MakeRequest(RandomPrompt(i, 400), 2), nullptr)
              .ok());
    }
    if (event.last) ended.Notify();
  };
  ASSERT_TRUE(scheduler->Submit(MakeRequest({20}, 200), watch).ok());
  ended.WaitForNotification();
  ExpectNoPagesUsed(*scheduler);
  EXPECT_EQ(events, 200);
  EXPECT_LE(most, 17);  // a prompt's last token is a row of its own
  EXPECT_GE(with_prompt, 45);
}

// Prompts that begin alike and come together: what they share runs once, and
// what follows is as long as it is alone.
TEST(SchedulerTest, PromptsThatComeTogetherRunWhatTheyShareOnce) {
  for (const bool prefix_cache : {true, false}) {
    SchedulerOptions options;
    options.prefix_cache = prefix_cache;
    const auto scheduler = MakeScheduler(kTinyModel, 4, 0, options);
    absl::Notification submitted;
    ASSERT_TRUE(
        scheduler
            ->Submit(MakeRequest({20}, 1),
                     [&](const Event&) { submitted.WaitForNotification(); })
            .ok());
    std::vector<std::future<absl::StatusOr<Completion>>> results;
    for (int i = 0; i < 4; ++i) {
      std::vector<int32_t> prompt = RandomPrompt(1, 300);
      if (i == 3) prompt[200] = 5;
      auto result = SubmitForResult(*scheduler, MakeRequest(prompt, 3));
      ASSERT_TRUE(result.ok());
      results.push_back(*std::move(result));
    }
    submitted.Notify();
    const std::vector<int64_t> shared = {0, 299, 299, 200};
    for (int i = 0; i < 4; ++i) {
      const auto completion = results[i].get();
      ASSERT_TRUE(completion.ok());
      EXPECT_EQ(completion->usage.cached_tokens, prefix_cache ? shared[i] : 0);
      EXPECT_EQ(completion->choices[0].tokens.size(), 3u);
    }
    ExpectNoPagesUsed(*scheduler);
    EXPECT_EQ(scheduler->GetStats().prefill_tokens,
              1 + (prefix_cache ? 300 + 1 + 1 + 100 : 4 * 300));
  }
}

TEST(SchedulerTest, ScopesShareNoPages) {
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0);
  const auto cached = [&](uint64_t scope) {
    Request request = MakeRequest(RandomPrompt(1, 150), 2);
    request.cache_scope = scope;
    return Result(*scheduler, std::move(request)).usage.cached_tokens;
  };
  EXPECT_EQ(cached(0), 0);
  EXPECT_EQ(cached(7), 0);
  EXPECT_EQ(cached(0), 149);
  EXPECT_EQ(cached(7), 149);
  EXPECT_GT(scheduler->GetStats().pages_cached, 0);
}

}  // namespace
}  // namespace weft
