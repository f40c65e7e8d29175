// With a model's own next-token block guessing, requests give the bits that
// they give without: at once and one by one, prompts cut into steps, found in
// the cache or given up, with few pages and with cancellations.
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/api/speculation.h"
#include "tests/runtime/api/serving.h"

namespace weft {
namespace {

constexpr const char* kModels[] = {
    "tests/data/golden/recurrent/qwen35-mtp.gguf",
    "tests/data/golden/families/glm4moe-air.gguf"};

struct Serving {
  int slots = 8;
  int64_t pages = 0;
  int64_t prefill = 64;
  std::string cache_folder = {};
};

std::unique_ptr<Scheduler> Serve(const std::string& path,
                                 const Serving& serving, bool guess) {
  EngineOptions options;
  options.slots = serving.slots;
  options.kv_pages = serving.pages;
  options.threads = 2;
  options.checkpoints = 4;
  options.more_logit_rows = 4;
  options.keeps_prompts = true;
  SpeculationOptions speculation;
  speculation.mode = guess ? "mtp" : "off";
  AskFor(speculation.mode, &options);
  auto engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  if (!engine.ok()) return nullptr;
  SchedulerOptions scheduling;
  auto proposer = MakeProposer(**engine, speculation);
  EXPECT_TRUE(proposer.ok()) << proposer.status();
  scheduling.proposer = *std::move(proposer);
  scheduling.always_guess = true;
  scheduling.prefill_tokens = serving.prefill;
  scheduling.prefill_tokens_alone = serving.prefill;
  scheduling.prompt_logprob_rows = 4;
  scheduling.cache_folder = serving.cache_folder;
  return MakeScheduler(*std::move(engine), scheduling);
}

constexpr int kRequests = 10;

// Greedy and drawn; prompts that share their beginnings, some longer than pages
// and than what a step takes.
Request RequestOf(int index) {
  std::vector<int32_t> prompt = RandomPrompt(1, 70);
  const std::vector<int32_t> own =
      RandomPrompt(100 + index / 2, 3 + 31 * (index % 4));
  if (index % 3 == 0) prompt.clear();
  prompt.insert(prompt.end(), own.begin(), own.end());
  Request request = MakeRequest(std::move(prompt), 15 + 13 * (index % 4));
  request.logprobs = index % 3;
  if (index % 2 == 1) {
    request.sampling.temperature = 0.8f;
    request.sampling.seed = 40 + index;
    request.sampling.repeat_penalty = 1.1f;
  }
  if (index == 4) request.choices = 3;
  if (index == 5) request.prompt_logprobs = 2;
  if (index == 6) request.speculate = false;
  if (index == 7) request.stop_at_end_of_text = true;
  return request;
}

std::vector<Completion> RunAll(Scheduler& scheduler, bool at_once) {
  std::vector<std::future<absl::StatusOr<Completion>>> results;
  std::vector<Completion> completions;
  const auto take = [&] {
    for (auto& result : results) {
      auto completion = result.get();
      EXPECT_TRUE(completion.ok()) << completion.status();
      completions.push_back(completion.ok() ? *std::move(completion)
                                            : Completion());
    }
    results.clear();
  };
  for (int i = 0; i < kRequests; ++i) {
    auto result = SubmitForResult(scheduler, RequestOf(i));
    EXPECT_TRUE(result.ok()) << result.status();
    if (result.ok()) results.push_back(*std::move(result));
    if (!at_once) take();
  }
  take();
  return completions;
}

TEST(NextTokenIdentity, GuessesChangeNoBit) {
  for (const char* path : kModels) {
    SCOPED_TRACE(path);
    const auto plain = Serve(path, {}, false);
    ASSERT_NE(plain, nullptr);
    const std::vector<Completion> want = RunAll(*plain, true);
    const auto check = [&](const char* name, const Serving& serving) {
      SCOPED_TRACE(name);
      const auto guessing = Serve(path, serving, true);
      ASSERT_NE(guessing, nullptr);
      ExpectSameAll(RunAll(*guessing, true), want);
      // And again, out of the cache.
      ExpectSameAll(RunAll(*guessing, false), want);
      ExpectNoPagesUsed(*guessing);
      const SchedulerStats stats = guessing->GetStats();
      EXPECT_GT(stats.drafted_tokens, 100);
      EXPECT_LE(stats.accepted_tokens, stats.drafted_tokens);
      EXPECT_GT(stats.prefix_hit_tokens, 0);
    };
    check("eight at once", {});
    check("one by one", {1});
    check("prompts in small parts", {8, 0, 5});
    check("few pages", {8, 9});
  }
}

// Pages from files have the block's keys, too; and those of a model without a
// block are no such pages.
TEST(NextTokenIdentity, PromptsThatAreKeptInFilesChangeNoBit) {
  const std::string folder = testing::TempDir() + "/next_token_pages";
  Serving kept;
  kept.cache_folder = folder;
  const auto plain = Serve(kModels[1], {}, false);
  ASSERT_NE(plain, nullptr);
  const std::vector<Completion> want = RunAll(*plain, true);
  for (const bool guess : {false, true, true}) {
    const auto serving = Serve(kModels[1], kept, guess);
    ASSERT_NE(serving, nullptr);
    ExpectSameAll(RunAll(*serving, true), want);
    serving->Drain(absl::InfiniteDuration());
  }
}

TEST(NextTokenIdentity, CancelledTextsLeaveTheOthersAlone) {
  for (const char* path : kModels) {
    SCOPED_TRACE(path);
    const auto plain = Serve(path, {}, false);
    const auto guessing = Serve(path, {}, true);
    ASSERT_TRUE(plain != nullptr && guessing != nullptr);
    const std::vector<Completion> want = RunAll(*plain, true);
    std::vector<RequestId> cancelled;
    for (int i = 0; i < 6; ++i) {
      const auto id = guessing->Submit(
          MakeRequest(RandomPrompt(1, 60 + 20 * i), 200), [](const Event&) {});
      ASSERT_TRUE(id.ok()) << id.status();
      cancelled.push_back(*id);
    }
    std::vector<std::future<absl::StatusOr<Completion>>> results;
    for (int i = 0; i < kRequests; ++i) {
      auto result = SubmitForResult(*guessing, RequestOf(i));
      ASSERT_TRUE(result.ok()) << result.status();
      results.push_back(*std::move(result));
      if (i < 6) guessing->Cancel(cancelled[i]);
    }
    std::vector<Completion> found;
    for (auto& result : results) {
      auto completion = result.get();
      ASSERT_TRUE(completion.ok()) << completion.status();
      found.push_back(*std::move(completion));
    }
    ExpectSameAll(found, want);
    ExpectNoPagesUsed(*guessing);
  }
}

TEST(NextTokenIdentity, AsksForABlockWhereItIsToGuess) {
  auto engine = MakeEngine(kModels[0], 1, 0);
  ASSERT_NE(engine, nullptr);
  SpeculationOptions speculation;
  speculation.mode = "mtp";
  const auto proposer = MakeProposer(*engine, speculation);
  ASSERT_FALSE(proposer.ok());
  EXPECT_NE(proposer.status().message().find("next-token block"),
            std::string::npos);
}

}  // namespace
}  // namespace weft
