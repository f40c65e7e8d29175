// The block's keys, values and guesses: the same however the text came to be.
#include "runtime/speculation/next_token_proposer.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/allocation_counter.h"
#include "gtest/gtest.h"
#include "runtime/api/engine.h"

namespace weft {
namespace {

using Tokens = std::vector<int32_t>;

constexpr const char* kModels[] = {
    "tests/data/golden/recurrent/qwen35-mtp.gguf",
    "tests/data/golden/families/glm4moe-air.gguf"};
constexpr int64_t kGuesses = 5;

Tokens SomeTokens(int64_t size, int seed = 0) {
  Tokens tokens(size);
  for (int64_t i = 0; i < size; ++i) tokens[i] = 9 + (i * i + 7 * seed) % 301;
  return tokens;
}

// A model, and a proposer that follows its steps as a scheduler would let it.
class Text {
 public:
  explicit Text(const std::string& path) {
    EngineOptions options;
    options.model.graph.next_token_block = true;
    options.threads = 2;
    options.slots = 2;
    options.guess_rows = kGuesses;
    auto engine = Engine::Load(path, options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    proposer_ = std::make_unique<NextTokenProposer>(
        engine_->plan(), engine_->next_token_executor());
    EXPECT_TRUE(
        proposer_->Prepare(2, engine_->plan().context(), kGuesses).ok());
    logits_.resize(engine_->plan().model.vocabulary_size);
  }

  Engine& engine() { return *engine_; }
  NextTokenProposer& proposer() { return *proposer_; }

  // One step behind `computed` tokens of a slot.
  void Run(int32_t slot, int64_t computed, absl::Span<const int32_t> tokens) {
    const int64_t count = static_cast<int64_t>(tokens.size());
    ASSERT_TRUE(engine_->cache().Reserve(slot, computed + count).ok());
    positions_.resize(count);
    std::iota(positions_.begin(), positions_.end(),
              static_cast<int32_t>(computed));
    slots_.assign(count, slot);
    const int32_t last = static_cast<int32_t>(count) - 1;
    const Batch batch = {tokens, positions_, slots_,
                         absl::MakeConstSpan(&last, 1), logits_.data()};
    const absl::Status ran = engine_->executor().Run(batch);
    ASSERT_TRUE(ran.ok()) << ran;
    ASSERT_TRUE(
        proposer_->Follow(batch, engine_->executor().hidden_rows()).ok());
  }

  void RunInParts(int32_t slot, absl::Span<const int32_t> tokens,
                  int64_t part) {
    for (int64_t done = 0; done < static_cast<int64_t>(tokens.size());
         done += part) {
      Run(slot, done, tokens.subspan(done, part));
    }
  }

  // Of a text whose last token has not run.
  Tokens Guess(int32_t slot, const Tokens& tokens, double temperature = 0) {
    EXPECT_TRUE(engine_->cache().Reserve(slot, tokens.size() + kGuesses).ok());
    SamplingOptions sampling;
    sampling.temperature = temperature;
    sampling.seed = 5;
    const auto sampler =
        Sampler::Create(sampling, static_cast<int32_t>(logits_.size()));
    EXPECT_TRUE(sampler.ok());
    Tokens guesses(kGuesses);
    const Proposal proposal =
        proposer_->Propose(slot, tokens, *sampler, absl::MakeSpan(guesses));
    guesses.resize(proposal.tokens);
    return guesses;
  }

  std::vector<uint8_t> Page(int32_t slot, int64_t index) {
    std::vector<uint8_t> bytes(engine_->cache().page_bytes());
    engine_->cache().ReadPage(engine_->cache().pool().page(slot, index),
                              bytes.data());
    return bytes;
  }

 private:
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<NextTokenProposer> proposer_;
  std::vector<float> logits_;
  Tokens positions_, slots_;
};

TEST(NextTokenProposer, PagesAndGuessesDependOnTheTokensAlone) {
  for (const char* path : kModels) {
    SCOPED_TRACE(path);
    const Tokens tokens = SomeTokens(150);
    const Tokens ran(tokens.begin(), tokens.end() - 1);
    Text whole(path);
    whole.RunInParts(0, ran, 512);
    const Tokens guesses = whole.Guess(0, tokens);
    const Tokens drawn = whole.Guess(0, tokens, 1.5);
    EXPECT_EQ(static_cast<int64_t>(guesses.size()), kGuesses);
    EXPECT_EQ(static_cast<int64_t>(drawn.size()), kGuesses);
    for (const int64_t part : {1, 7, 64}) {
      Text other(path);
      other.RunInParts(1, SomeTokens(20, 3), 512);  // somebody else's
      other.RunInParts(0, ran, part);
      EXPECT_EQ(other.Page(0, 0), whole.Page(0, 0)) << part;
      EXPECT_EQ(other.Page(0, 1), whole.Page(0, 1)) << part;
      EXPECT_EQ(other.Guess(0, tokens), guesses) << part;
      EXPECT_EQ(other.Guess(0, tokens, 1.5), drawn) << part;
    }
  }
}

// Guesses that do not come true leave nothing behind.
TEST(NextTokenProposer, ForgetsWhatWasOnlyTried) {
  for (const char* path : kModels) {
    SCOPED_TRACE(path);
    const Tokens tokens = SomeTokens(135);
    Text plain(path);
    plain.RunInParts(0, absl::MakeConstSpan(tokens).first(134), 1);
    Text tried(path);
    tried.Run(0, 0, absl::MakeConstSpan(tokens).first(100));
    for (int64_t at = 100; at < 134; ++at) {
      const Tokens text(tokens.begin(), tokens.begin() + at + 1);
      Tokens step = {text.back()};
      for (const int32_t guess : tried.Guess(0, text)) {
        step.push_back((guess + 1) % 300);
      }
      tried.engine().executor().Mark(0);
      tried.Run(0, at, step);
      ASSERT_TRUE(tried.engine().executor().Truncate(0, at + 1).ok());
    }
    EXPECT_EQ(tried.Page(0, 0), plain.Page(0, 0));
    EXPECT_EQ(tried.Page(0, 1), plain.Page(0, 1));
    EXPECT_EQ(tried.Guess(0, tokens), plain.Guess(0, tokens));
  }
}

TEST(NextTokenProposer, GuessesNothingOfATextThatItDidNotFollow) {
  Text text(kModels[0]);
  const Tokens tokens = SomeTokens(30);
  text.RunInParts(0, absl::MakeConstSpan(tokens).first(29), 512);
  EXPECT_FALSE(text.Guess(0, tokens).empty());
  text.proposer().Begin(0, 0);
  EXPECT_TRUE(text.Guess(0, tokens).empty());
}

// The first guess is what the block says of the whole text: but for a row of
// zeros at its beginning, which the reference does not have.
TEST(NextTokenProposer, GuessesWhatTheBlockSays) {
  Text text(kModels[0]);
  const Tokens tokens = SomeTokens(120);
  text.RunInParts(0, absl::MakeConstSpan(tokens).first(119), 64);
  const Tokens guesses = text.Guess(0, tokens);
  EngineOptions options;
  options.model.graph.next_token_block = true;
  const auto engine = Engine::Load(kModels[0], options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  std::vector<float> last;
  ASSERT_TRUE((*engine)
                  ->EvaluateNextTokenBlock(
                      tokens, 0,
                      [&](int64_t, absl::Span<const float> logits) {
                        last.assign(logits.begin(), logits.end());
                        return absl::OkStatus();
                      })
                  .ok());
  ASSERT_FALSE(guesses.empty());
  // Among a few best.
  EXPECT_LT(std::count_if(last.begin(), last.end(),
                          [&](float x) { return x > last[guesses[0]]; }),
            3);
}

TEST(NextTokenProposer, AllocatesNothing) {
  Text text(kModels[0]);
  const Tokens tokens = SomeTokens(80);
  text.RunInParts(0, absl::MakeConstSpan(tokens).first(79), 512);
  const auto sampler = Sampler::Create({}, 320);
  ASSERT_TRUE(sampler.ok());
  Tokens guesses(kGuesses);
  ASSERT_TRUE(text.engine().cache().Reserve(0, 90).ok());
  const auto propose = [&] {
    return text.proposer()
        .Propose(0, tokens, *sampler, absl::MakeSpan(guesses))
        .tokens;
  };
  EXPECT_EQ(propose(), kGuesses);
  const Tokens positions = {79, 80}, slots = {0, 0};
  const int32_t last = 1;
  std::vector<float> logits(320);
  const Batch batch = {absl::MakeConstSpan(tokens).first(2), positions, slots,
                       absl::MakeConstSpan(&last, 1), logits.data()};
  ASSERT_TRUE(text.engine().executor().Run(batch).ok());
  const int64_t before = AllocationCount();
  EXPECT_TRUE(text.proposer()
                  .Follow(batch, text.engine().executor().hidden_rows())
                  .ok());
  EXPECT_EQ(propose(), kGuesses);
  EXPECT_EQ(AllocationCount(), before);
}

TEST(HiddenRows, AreFoundByTheirPositionWhileTheyAreKept) {
  HiddenRows rows(2, 3, 2);
  for (int64_t position = 0; position < 5; ++position) {
    const float row[] = {static_cast<float>(position), 0.5f};
    rows.Set(1, position, row);
  }
  EXPECT_EQ(rows.Find(1, -1), nullptr);
  EXPECT_EQ(rows.Find(1, 1), nullptr);
  EXPECT_EQ(rows.Find(1, 5), nullptr);
  EXPECT_EQ(rows.Find(0, 4), nullptr);
  for (int64_t position = 2; position < 5; ++position) {
    ASSERT_NE(rows.Find(1, position), nullptr);
    EXPECT_EQ(rows.Find(1, position)[0], position);
  }
  rows.Clear(1);
  EXPECT_EQ(rows.Find(1, 4), nullptr);
}

}  // namespace
}  // namespace weft
