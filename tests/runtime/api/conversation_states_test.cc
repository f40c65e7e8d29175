// Conversations with a model whose states by sequence cannot be cut: every turn
// computes its own tokens only, and is the same as if all had been computed.
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runtime/api/serving.h"

namespace weft {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int64_t kAnswer = 30;

class ConversationStatesTest : public ::testing::Test {
 protected:
  ConversationStatesTest() {
    EngineOptions options;
    options.threads = 2;
    options.checkpoints = 4;  // as the chat has
    auto engine = Engine::Load(kTinyHybrid, options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    kept_ = MakeScheduler(*std::move(engine), {});
    SchedulerOptions nothing;
    nothing.prefix_cache = false;
    plain_ = MakeScheduler(MakeEngine(kTinyHybrid, 1, 0), nothing);
  }

  // The tokens of the prompt and the answer; `computed`: of the prompt.
  Tokens Turn(const Tokens& prompt, uint32_t seed, int64_t computed) {
    const auto request = [&] {
      Request request = MakeRequest(prompt, kAnswer);
      request.sampling.temperature = 1;
      request.sampling.seed = seed;
      request.logprobs = 2;
      return request;
    };
    const int64_t before = kept_->GetStats().prefill_tokens;
    const auto found = Complete(*kept_, request());
    const auto want = Complete(*plain_, request());
    EXPECT_TRUE(found.ok() && want.ok());
    ExpectSame(found->choices[0], want->choices[0]);
    EXPECT_EQ(want->usage.cached_tokens, 0);
    EXPECT_EQ(kept_->GetStats().prefill_tokens - before, computed);
    EXPECT_EQ(found->usage.cached_tokens,
              static_cast<int64_t>(prompt.size()) - computed);
    Tokens all = prompt;
    for (const GeneratedToken& token : found->choices[0].tokens) {
      all.push_back(token.id);
    }
    return all;
  }

  static Tokens Joined(Tokens tokens, const Tokens& more) {
    tokens.insert(tokens.end(), more.begin(), more.end());
    return tokens;
  }

  std::unique_ptr<Scheduler> kept_, plain_;
};

// An answer's last token was drawn, but has not run.
TEST_F(ConversationStatesTest, ATurnComputesItsOwnTokens) {
  Tokens text = Turn(RandomPrompt(1, 200), 1, 200);
  for (uint32_t turn = 2; turn < 6; ++turn) {
    text = Turn(Joined(text, RandomPrompt(turn, 20)), turn, 20 + 1);
  }
}

TEST_F(ConversationStatesTest, AnAnswerIsMadeAgainFromWhereItsTurnBegan) {
  const Tokens first = Turn(RandomPrompt(1, 200), 1, 200);
  // Its prompt's states are kept before the last token.
  Turn(RandomPrompt(1, 200), 2, 1);
  const Tokens second = Joined(first, RandomPrompt(2, 20));
  Turn(second, 3, 20 + 1);
  Turn(second, 4, 20 + 1);
  const Tokens third = Joined(Turn(second, 5, 20 + 1), RandomPrompt(3, 100));
  Turn(third, 6, 100 + 1);
  Turn(third, 7, 1);
}

TEST_F(ConversationStatesTest, AnEditedTurnGoesOnFromTheTurnBefore) {
  const Tokens first = Turn(RandomPrompt(1, 200), 1, 200);
  Turn(Joined(first, RandomPrompt(2, 20)), 2, 20 + 1);
  Turn(Joined(first, RandomPrompt(3, 25)), 3, 25 + 1);
  Turn(Joined(first, RandomPrompt(4, 90)), 4, 90 + 1);
  // Of an edited first turn nothing is kept that stands on its way.
  Tokens other = RandomPrompt(1, 200);
  other[150] = 11;
  Turn(other, 5, 200);
}

}  // namespace
}  // namespace weft
