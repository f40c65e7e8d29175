// Requests with adapters: each has the bits that it has alone, beside others
// with other adapters and with what they left in the cache.
#include <future>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/loaders/adapter_file.h"
#include "tests/runtime/api/serving.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Scheduler> MakeScheduler(const std::string& path, int slots,
                                         bool prefix_cache) {
  const absl::StatusOr<GgufFile> model = OpenModel(path);
  EXPECT_TRUE(model.ok()) << model.status();
  AdapterFile first, second;
  first.tensors = {"attn_q.weight", "attn_qkv.weight", "ffn_down.weight"};
  second = first;
  second.seed = 2;
  second.rank = 9;
  EngineOptions options;
  options.slots = slots;
  options.threads = 2;
  options.checkpoints = 16;
  options.kv_pages = 64;  // so that nothing has to go
  options.model.graph.adapters = {MakeAdapter(*model, first, 1),
                                  MakeAdapter(*model, second, 0)};
  auto engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  if (!engine.ok()) return nullptr;
  SchedulerOptions scheduler;
  scheduler.prefix_cache = prefix_cache;
  return weft::MakeScheduler(*std::move(engine), scheduler);
}

// All of the same prompt.
Request RequestOf(std::vector<float> scales) {
  Request request = MakeRequest(RandomPrompt(1, 200), 12);
  request.logprobs = 2;
  request.adapter_scales = std::move(scales);
  return request;
}

const std::vector<std::vector<float>> kScales = {
    {0, 0}, {1, 0}, {0, 1}, {0.5f, 1}, {0.5f, 0}, {1, 0}, {}, {-0.0f, 0}};

class AdapterRequests : public ::testing::TestWithParam<const char*> {};

TEST_P(AdapterRequests, SideBySideAndCachedHaveTheBitsOfThemselvesAlone) {
  std::vector<ChoiceResult> alone;
  const auto one = MakeScheduler(GetParam(), 1, false);
  ASSERT_NE(one, nullptr);
  for (const std::vector<float>& scales : kScales) {
    auto completion = Complete(*one, RequestOf(scales));
    ASSERT_TRUE(completion.ok()) << completion.status();
    alone.push_back(completion->choices[0]);
  }
  EXPECT_NE(alone[0].tokens[0].logprob, alone[1].tokens[0].logprob);
  EXPECT_NE(alone[1].tokens[0].logprob, alone[2].tokens[0].logprob);
  // What the model was loaded with.
  ExpectSame(alone[6], alone[1]);
  ExpectSame(alone[7], alone[0]);

  const auto many = MakeScheduler(GetParam(), 4, true);
  ASSERT_NE(many, nullptr);
  for (int round = 0; round < 2; ++round) {
    std::vector<std::future<absl::StatusOr<Completion>>> completions;
    for (const std::vector<float>& scales : kScales) {
      completions.push_back(std::async(std::launch::async, [&many, scales] {
        return Complete(*many, RequestOf(scales));
      }));
    }
    for (size_t i = 0; i < kScales.size(); ++i) {
      const absl::StatusOr<Completion> completion = completions[i].get();
      ASSERT_TRUE(completion.ok()) << completion.status();
      ExpectSame(completion->choices[0], alone[i]);
    }
  }
}

TEST_P(AdapterRequests, FindPagesOfTheSameAdaptersAlone) {
  const auto scheduler = MakeScheduler(GetParam(), 1, true);
  ASSERT_NE(scheduler, nullptr);
  const auto cached = [&](std::vector<float> scales) {
    const auto completion = Complete(*scheduler, RequestOf(std::move(scales)));
    EXPECT_TRUE(completion.ok()) << completion.status();
    return completion.ok() ? completion->usage.cached_tokens : -1;
  };
  EXPECT_EQ(cached({1, 0}), 0);
  EXPECT_EQ(cached({0, 1}), 0);
  EXPECT_EQ(cached({0, 0}), 0);
  EXPECT_EQ(cached({1, 0.5f}), 0);
  EXPECT_EQ(cached({1, 0}), 199);
  EXPECT_EQ(cached({1, -0.0f}), 199);
  EXPECT_EQ(cached({}), 199);
  EXPECT_EQ(cached({0, 0}), 199);
  EXPECT_EQ(cached({1, 0.5f}), 199);
}

INSTANTIATE_TEST_SUITE_P(Models, AdapterRequests,
                         ::testing::Values(kTinyModel, kTinyHybrid));

TEST(AdapterRequestFields, AreChecked) {
  const auto scheduler = MakeScheduler(kTinyModel, 1, true);
  ASSERT_NE(scheduler, nullptr);
  const auto refusal = [&](Scheduler& asked, std::vector<float> scales) {
    return std::string(
        Complete(asked, RequestOf(std::move(scales))).status().message());
  };
  EXPECT_THAT(refusal(*scheduler, {1}), HasSubstr("adapter_scales: 1, must"));
  EXPECT_THAT(refusal(*scheduler, {1, NAN}), HasSubstr("finite"));
  const auto plain = weft::MakeScheduler(kTinyModel, 1, 0);
  EXPECT_THAT(refusal(*plain, {1}), HasSubstr("the model's 0 adapters"));
}

}  // namespace
}  // namespace weft
