// Whatever is guessed, a request gives the bits that it gives without.
#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "runtime/generation/constraint_cache.h"
#include "runtime/speculation/lookup_proposer.h"
#include "tests/golden/golden_data.h"
#include "tests/runtime/api/serving.h"
#include "tests/runtime/speculation/test_proposers.h"

namespace weft {
namespace {

constexpr int64_t kGuessRows = 12;

// Leaves one token alone most of the time, which text comes before decides
// which; and its masks take their time.
class NarrowConstraint : public TokenConstraint {
 public:
  explicit NarrowConstraint(int parts) : parts_(parts) {}

  bool Prepare(int64_t) override { return ++prepared_ > parts_; }
  absl::Status Mask(absl::Span<uint64_t> allowed) override {
    std::fill(allowed.begin(), allowed.end(), 0);
    if (state_ % 4 == 0) {
      for (int32_t id = 10; id < 90; ++id) Allow(id, allowed);
    } else {
      Allow(10 + state_ % 61, allowed);
    }
    return absl::OkStatus();
  }
  absl::Status Accept(int32_t token) override {
    state_ = (state_ * 31 + token + 7) % 1009;
    prepared_ = 0;
    return absl::OkStatus();
  }
  std::unique_ptr<TokenConstraint> Clone() const override {
    return std::make_unique<NarrowConstraint>(*this);
  }

 private:
  static void Allow(int32_t id, absl::Span<uint64_t> allowed) {
    allowed[id / 64] |= uint64_t{1} << id % 64;
  }

  int parts_, prepared_ = 0;
  uint32_t state_ = 0;
};

constexpr int kRequests = 10;

// Of every kind; prompts that repeat themselves and each other.
Request RequestOf(int index) {
  std::vector<int32_t> prompt = RandomPrompt(index / 2, 12 + 9 * (index % 4));
  const std::vector<int32_t> once = prompt;
  prompt.insert(prompt.end(), once.begin(), once.end());
  prompt.push_back(once[0]);
  Request request = MakeRequest(std::move(prompt), 20 + 11 * (index % 4));
  request.logprobs = index % 3;
  if (index % 2 == 1) {
    request.sampling.temperature = 0.7f;
    request.sampling.seed = 100 + index;
    request.sampling.presence_penalty = 0.3f;
  }
  switch (index) {
    case 2:
      request.constraint = std::make_unique<NarrowConstraint>(0);
      break;
    case 3:
      request.choices = 3;
      break;
    case 4:
      // A small vocabulary: much comes again.
      for (int32_t id = 20; id < 26; ++id) {
        request.logit_bias.emplace_back(id, 30.0f);
      }
      request.max_tokens = 100;
      break;
    case 5:
      request.constraint = std::make_unique<NarrowConstraint>(2);
      request.min_tokens = 5;
      request.max_tokens = 60;
      break;
    case 6:
      request.stop_at_end_of_text = true;
      break;
    case 7:
      for (int32_t id = 20; id < 24; ++id) {
        request.logit_bias.emplace_back(id, 30.0f);
      }
      request.stop_tokens = {22, 23};
      request.min_tokens = 9;
      request.tell_end = true;
      break;
    case 8:
      request.prompt_logprobs = 1;
      break;
    default:
      break;
  }
  return request;
}

struct Loaded {
  std::unique_ptr<Scheduler> scheduler;
  int32_t vocabulary = 0;
};

Loaded Load(const std::string& path, int slots, int64_t pages,
            std::shared_ptr<Proposer> proposer, int64_t guess_rows,
            const std::string& kv_type) {
  EngineOptions options;
  options.model.graph.kv_type = *KvTypes::Parse(kv_type);
  options.slots = slots;
  options.kv_pages = pages;
  options.threads = 2;
  options.checkpoints = 4;
  options.guess_rows = guess_rows;
  options.more_logit_rows = 8;
  auto engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  if (!engine.ok()) return {};
  Loaded loaded;
  loaded.vocabulary =
      static_cast<int32_t>((*engine)->plan().model.vocabulary_size);
  SchedulerOptions scheduling;
  scheduling.proposer = std::move(proposer);
  scheduling.always_guess = true;
  scheduling.prompt_logprob_rows = 8;
  loaded.scheduler = MakeScheduler(*std::move(engine), scheduling);
  return loaded;
}

// All at once, in the order of their numbers.
std::vector<Completion> RunAll(Scheduler& scheduler) {
  absl::Notification submitted;
  EXPECT_TRUE(
      scheduler
          .Submit(MakeRequest({20}, 1),
                  [&](const Event&) { submitted.WaitForNotification(); })
          .ok());
  std::vector<std::future<absl::StatusOr<Completion>>> results;
  for (int i = 0; i < kRequests; ++i) {
    auto result = SubmitForResult(scheduler, RequestOf(i));
    EXPECT_TRUE(result.ok()) << result.status();
    if (result.ok()) results.push_back(*std::move(result));
  }
  submitted.Notify();
  std::vector<Completion> completions;
  for (auto& result : results) {
    auto completion = result.get();
    EXPECT_TRUE(completion.ok()) << completion.status();
    completions.push_back(completion.ok() ? *std::move(completion)
                                          : Completion());
  }
  return completions;
}

std::vector<std::vector<int32_t>> TextsOf(
    const std::vector<Completion>& completions) {
  std::vector<std::vector<int32_t>> texts;
  for (int i = 0; i < kRequests; ++i) {
    for (const ChoiceResult& choice : completions[i].choices) {
      texts.push_back(RequestOf(i).prompt_tokens);
      for (const GeneratedToken& token : choice.tokens) {
        texts.back().push_back(token.id);
      }
    }
  }
  return texts;
}

void ExpectNoBitChanges(const std::string& path,
                        const std::string& kv_type = "f16") {
  SCOPED_TRACE(absl::StrCat(path, " ", kv_type));
  const Loaded plain = Load(path, 8, 0, nullptr, 0, kv_type);
  ASSERT_NE(plain.scheduler, nullptr);
  const std::vector<Completion> want = RunAll(*plain.scheduler);
  const int64_t steps = plain.scheduler->GetStats().steps;
  EXPECT_EQ(plain.scheduler->GetStats().drafted_tokens, 0);
  const auto check = [&](const char* name, int slots, int64_t pages,
                         std::shared_ptr<Proposer> proposer) {
    SCOPED_TRACE(absl::StrCat(name, ", ", slots, " slots"));
    const Loaded loaded =
        Load(path, slots, pages, std::move(proposer), kGuessRows, kv_type);
    ASSERT_NE(loaded.scheduler, nullptr);
    ExpectSameAll(RunAll(*loaded.scheduler), want);
    ExpectNoPagesUsed(*loaded.scheduler);
    const SchedulerStats stats = loaded.scheduler->GetStats();
    EXPECT_GT(stats.drafted_tokens, 100);
    EXPECT_LE(stats.accepted_tokens, stats.drafted_tokens);
    if (name == std::string("right")) {
      EXPECT_GT(stats.accepted_tokens, stats.drafted_tokens / 2);
      if (slots == 8) {
        EXPECT_LT(stats.steps, steps);
      }
    }
  };
  const auto random = [&] {
    return std::make_shared<RandomProposer>(plain.vocabulary);
  };
  const auto knowing = [&](double right) {
    return std::make_shared<KnowingProposer>(TextsOf(want), right);
  };
  check("mostly right", 8, 0, knowing(0.7));
  if (kv_type != "f16") return;
  check("random", 1, 0, random());
  check("random", 8, 0, random());
  check("right", 1, 0, knowing(1));
  check("right", 8, 0, knowing(1));
  check("mostly right, few pages", 8, 9, knowing(0.7));
  check("lookup", 1, 0, std::make_shared<LookupProposer>());
  check("lookup", 8, 0, std::make_shared<LookupProposer>());
}

TEST(SpeculationIdentity, RandomModels) {
  for (const GoldenModel& model : GoldenModels("arch")) {
    if (model.name.find("bert") != std::string::npos) continue;
    ExpectNoBitChanges(model.path());
  }
}

TEST(SpeculationIdentity, RecurrentModels) {
  for (const GoldenModel& model : GoldenModels("recurrent")) {
    ExpectNoBitChanges(model.path());
  }
}

TEST(SpeculationIdentity, TheTrainedModel) {
  for (const char* kv_type : {"f16", "bf16", "q8_0", "f32"}) {
    ExpectNoBitChanges("", kv_type);
  }
}

}  // namespace
}  // namespace weft
