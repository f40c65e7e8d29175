// Speculation beside what else a scheduler does, and what it says of itself.
#include "runtime/api/speculation.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/allocation_counter.h"
#include "gtest/gtest.h"
#include "runtime/generation/constraint_cache.h"
#include "tests/runtime/api/serving.h"
#include "tests/runtime/speculation/test_proposers.h"

namespace weft {
namespace {

struct Setting {
  std::string model = kTinyModel;
  int slots = 2;
  int64_t context = 0;
  int64_t guess_rows = kGuessRows;
  std::shared_ptr<Proposer> proposer;
  std::string mode = "off";  // where there is no proposer
  std::string draft;
  bool always = true;
};

std::unique_ptr<Scheduler> Make(const Setting& setting) {
  EngineOptions options;
  options.slots = setting.slots;
  options.threads = 2;
  options.checkpoints = 8;
  options.guess_rows = setting.guess_rows;
  options.model.graph.context = setting.context;
  auto engine = Engine::Load(setting.model, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  if (!engine.ok()) return nullptr;
  SchedulerOptions scheduling;
  scheduling.proposer = setting.proposer;
  scheduling.always_guess = setting.always;
  if (setting.proposer == nullptr) {
    SpeculationOptions speculation;
    speculation.mode = setting.mode;
    auto made = MakeProposer(**engine, speculation);
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok()) return nullptr;
    scheduling.proposer = *std::move(made);
  }
  return MakeScheduler(*std::move(engine), scheduling);
}

// Without any.
std::unique_ptr<Scheduler> MakePlain(Setting setting) {
  setting.guess_rows = 0;
  setting.proposer = nullptr;
  setting.mode = "off";
  return Make(setting);
}

std::vector<int32_t> Whole(const Request& request, const Completion& done) {
  std::vector<int32_t> tokens = request.prompt_tokens;
  for (const GeneratedToken& token : done.choices[0].tokens) {
    tokens.push_back(token.id);
  }
  return tokens;
}

Request LongRequest(int64_t tokens) {
  Request request = MakeRequest(RandomPrompt(4, 70), tokens);
  request.sampling.temperature = 0.9f;
  request.sampling.seed = 5;
  request.logprobs = 1;
  return request;
}

TEST(Speculation, ContextsThatAreShiftedGiveTheSame) {
  for (const char* model : {kTinyModel, kTinyHybrid}) {
    SCOPED_TRACE(model);
    Setting setting;
    setting.model = model;
    setting.context = 128;
    const auto plain = MakePlain(setting);
    ASSERT_NE(plain, nullptr);
    const auto request = [] {
      Request asked = LongRequest(300);
      asked.overflow = ContextOverflow::kShift;
      return asked;
    };
    const auto want = Complete(*plain, request());
    ASSERT_TRUE(want.ok()) << want.status();
    EXPECT_GT(plain->GetStats().context_shifts, 1);
    std::vector<std::shared_ptr<Proposer>> proposers = {
        std::make_shared<RandomProposer>(300),
        std::make_shared<KnowingProposer>(
            std::vector<std::vector<int32_t>>{Whole(request(), *want)}, 0.9)};
    for (const auto& proposer : proposers) {
      setting.proposer = proposer;
      const auto scheduler = Make(setting);
      ASSERT_NE(scheduler, nullptr);
      const auto found = Complete(*scheduler, request());
      ASSERT_TRUE(found.ok()) << found.status();
      ExpectSame(found->choices[0], want->choices[0]);
      EXPECT_GT(found->usage.drafted_tokens, 0);
      EXPECT_EQ(scheduler->GetStats().context_shifts,
                plain->GetStats().context_shifts);
      ExpectNoPagesUsed(*scheduler);
    }
  }
}

TEST(Speculation, StopStringsEndWhereTheyDo) {
  Setting setting;
  setting.model = "";
  const auto plain = MakePlain(setting);
  ASSERT_NE(plain, nullptr);
  const auto prompt = plain->tokenizer().Encode(
      "It is a truth universally acknowledged, that", {});
  ASSERT_TRUE(prompt.ok());
  const auto request = [&](std::string stop) {
    Request asked = MakeRequest(*prompt, 60);
    asked.logprobs = 0;
    if (!stop.empty()) asked.stop_strings = {std::move(stop)};
    return asked;
  };
  const auto free = Complete(*plain, request(""));
  ASSERT_TRUE(free.ok());
  const std::string& text = free->choices[0].text;
  ASSERT_GT(text.size(), 60u);
  setting.proposer = std::make_shared<KnowingProposer>(
      std::vector<std::vector<int32_t>>{Whole(request(""), *free)}, 1);
  const auto scheduler = Make(setting);
  ASSERT_NE(scheduler, nullptr);
  for (size_t at = 10; at < 60; at += 7) {
    const auto want = Complete(*plain, request(text.substr(at, 5)));
    const auto found = Complete(*scheduler, request(text.substr(at, 5)));
    ASSERT_TRUE(want.ok() && found.ok());
    EXPECT_EQ(found->choices[0].reason, FinishReason::kStopString);
    ExpectSame(found->choices[0], want->choices[0]);
    EXPECT_EQ(found->usage.completion_tokens, want->usage.completion_tokens);
  }
  EXPECT_GT(scheduler->GetStats().accepted_tokens, 10);
}

// What a text leaves in the prefix cache is what it leaves without.
TEST(Speculation, ConversationsFindTheSameInTheCache) {
  for (const char* model : {kTinyModel, kTinyHybrid}) {
    SCOPED_TRACE(model);
    Setting setting;
    setting.model = model;
    setting.slots = 1;
    const auto plain = MakePlain(setting);
    setting.proposer = std::make_shared<RandomProposer>(300);
    const auto random = Make(setting);
    setting.proposer = nullptr;
    setting.mode = "lookup";
    const auto lookup = Make(setting);
    ASSERT_TRUE(plain && random && lookup);
    std::vector<int32_t> tokens = RandomPrompt(8, 90);
    for (int turn = 0; turn < 4; ++turn) {
      Request request = MakeRequest(tokens, 50);
      request.logprobs = 0;
      const auto ask = [&] {
        Request asked = MakeRequest(tokens, 50);
        asked.logprobs = 0;
        return asked;
      };
      const auto want = Complete(*plain, ask());
      ASSERT_TRUE(want.ok());
      for (Scheduler* scheduler : {random.get(), lookup.get()}) {
        const auto found = Complete(*scheduler, ask());
        ASSERT_TRUE(found.ok());
        ExpectSame(found->choices[0], want->choices[0]);
        EXPECT_EQ(found->usage.cached_tokens, want->usage.cached_tokens);
      }
      EXPECT_EQ(want->usage.cached_tokens > 0, turn > 0);
      tokens = Whole(request, *want);
      tokens.insert(tokens.end(), {30, 31, 32});
    }
  }
}

constexpr absl::string_view kSchema = R"({
  "type": "object", "additionalProperties": false,
  "required": ["a_rather_long_name", "another_long_name"],
  "properties": {
    "a_rather_long_name": {"enum": ["first choice", "second choice"]},
    "another_long_name": {"type": "integer", "minimum": 0, "maximum": 999}}})";

TEST(Speculation, SchemasSkipAheadWithTheSameBits) {
  Setting setting;
  setting.model = "";
  const auto plain = MakePlain(setting);
  const auto skips = Make(setting);  // nobody guesses
  setting.mode = "lookup";
  const auto lookup = Make(setting);
  ASSERT_TRUE(plain && skips && lookup);
  const auto run = [](Scheduler& scheduler, uint64_t seed) {
    ConstraintCache cache(&scheduler.tokenizer());
    Request request = MakeRequest({20, 21, 22}, 400);
    request.logprobs = 2;
    request.stop_at_end_of_text = true;
    request.sampling.temperature = seed == 0 ? 0.0f : 1.0f;
    request.sampling.seed = seed;
    auto constraint = cache.OfJsonSchema(kSchema);
    EXPECT_TRUE(constraint.ok()) << constraint.status();
    request.constraint = *std::move(constraint);
    const int64_t before = scheduler.GetStats().steps;
    auto done = Complete(scheduler, std::move(request));
    EXPECT_TRUE(done.ok()) << done.status();
    return std::make_pair(*std::move(done),
                          scheduler.GetStats().steps - before);
  };
  for (const uint64_t seed : {0, 1, 2, 3}) {
    const auto [want, steps] = run(*plain, seed);
    EXPECT_EQ(want.choices[0].reason, FinishReason::kEndOfText);
    for (Scheduler* scheduler : {skips.get(), lookup.get()}) {
      const auto [found, fewer] = run(*scheduler, seed);
      ExpectSame(found.choices[0], want.choices[0]);
      EXPECT_LT(fewer, steps);
    }
  }
  // They are no guesses.
  EXPECT_EQ(skips->GetStats().drafted_tokens, 0);
}

// What decides how many tokens are guessed is time, so all that can be said is
// that no bit depends on it.
TEST(Speculation, MeasuredNumbersOfGuessesChangeNoBit) {
  for (const char* model : {kTinyModel, kTinyHybrid, ""}) {
    SCOPED_TRACE(model);
    Setting setting;
    setting.model = model;
    setting.always = false;
    const auto plain = MakePlain(setting);
    ASSERT_NE(plain, nullptr);
    const auto want = Complete(*plain, LongRequest(150));
    ASSERT_TRUE(want.ok());
    for (const double right : {0.0, 0.5, 1.0}) {
      setting.proposer = std::make_shared<KnowingProposer>(
          std::vector<std::vector<int32_t>>{Whole(LongRequest(150), *want)},
          right);
      const auto scheduler = Make(setting);
      ASSERT_NE(scheduler, nullptr);
      const auto found = Complete(*scheduler, LongRequest(150));
      ASSERT_TRUE(found.ok());
      ExpectSame(found->choices[0], want->choices[0]);
      if (right == 0) {
        // It soon gives up.
        EXPECT_LT(found->usage.drafted_tokens, 120);
      }
    }
  }
}

TEST(Speculation, RequestsMayDoWithout) {
  Setting setting;
  setting.proposer = std::make_shared<RandomProposer>(300);
  const auto scheduler = Make(setting);
  ASSERT_NE(scheduler, nullptr);
  Request request = LongRequest(40);
  request.speculate = false;
  const auto without = Complete(*scheduler, std::move(request));
  ASSERT_TRUE(without.ok());
  EXPECT_EQ(without->usage.drafted_tokens, 0);
  const auto with = Complete(*scheduler, LongRequest(40));
  ASSERT_TRUE(with.ok());
  EXPECT_GT(with->usage.drafted_tokens, 0);
  ExpectSame(with->choices[0], without->choices[0]);
  EXPECT_EQ(scheduler->GetStats().drafted_tokens, with->usage.drafted_tokens);
}

TEST(Speculation, StepsAllocateNothing) {
  for (const char* model : {kTinyModel, kTinyHybrid}) {
    SCOPED_TRACE(model);
    Setting setting;
    setting.model = model;
    setting.slots = 1;
    setting.mode = "lookup";
    const auto scheduler = Make(setting);
    ASSERT_NE(scheduler, nullptr);
    Request request = MakeRequest({20, 21}, 300);
    request.logit_bias = {{30, 50.0f}, {31, 50.0f}, {32, 50.0f}};
    int64_t begin = 0, end = 0;
    size_t tokens = 0;
    const auto result =
        Complete(*scheduler, std::move(request), [&](const Event& event) {
          tokens += event.tokens.size();
          if (begin == 0 && tokens >= 40) begin = AllocationCount();
          if (tokens < 280) end = AllocationCount();
        });
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_GT(result->usage.accepted_tokens, 50);
    // What an event holds grows a few times.
    EXPECT_LE(end - begin, 12);
  }
}

TEST(Speculation, ADraftModelOfTheSameVocabulary) {
  for (const char* model : {kTinyModel, kTinyHybrid}) {
    SCOPED_TRACE(model);
    Setting setting;
    setting.model = model;
    const auto plain = MakePlain(setting);
    setting.mode = absl::StrCat("draft:", model);
    const auto drafts = Make(setting);
    ASSERT_TRUE(plain && drafts);
    for (const float temperature : {0.0f, 0.9f}) {
      const auto request = [&] {
        Request asked = LongRequest(60);
        asked.choices = 2;
        asked.sampling.temperature = temperature;
        return asked;
      };
      const auto want = Complete(*plain, request());
      const auto found = Complete(*drafts, request());
      ASSERT_TRUE(want.ok() && found.ok()) << found.status();
      for (int choice = 0; choice < 2; ++choice) {
        ExpectSame(found->choices[choice], want->choices[choice]);
      }
      EXPECT_GT(found->usage.drafted_tokens, 40);
      // It is its own draft: all is right, drawn with the same numbers.
      EXPECT_EQ(found->usage.accepted_tokens, found->usage.drafted_tokens);
    }
  }
}

TEST(Speculation, ModesAndDraftsThatCannotBeAreRefused) {
  EngineOptions options;
  options.guess_rows = 4;
  const auto engine = Engine::Load(kTinyModel, options);
  ASSERT_TRUE(engine.ok());
  EXPECT_EQ((*engine)->guess_rows(), 4);
  const auto error = [&](const std::string& mode) {
    SpeculationOptions speculation;
    speculation.mode = mode;
    const auto made = MakeProposer(**engine, speculation);
    EXPECT_FALSE(made.ok()) << mode;
    return std::string(made.status().message());
  };
  EXPECT_NE(error("guess").find("want off, lookup"), std::string::npos);
  EXPECT_NE(error("draft:").find("want off, lookup"), std::string::npos);
  EXPECT_NE(error("draft:no-such-file").find("no-such-file"),
            std::string::npos);
  // The embedded model's.
  EXPECT_NE(error("draft:tests/data/golden/arch/bert.gguf").find("draft"),
            std::string::npos);
}

}  // namespace
}  // namespace weft
