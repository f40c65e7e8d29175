#include "runtime/speculation/lookup_proposer.h"

#include <numeric>
#include <random>
#include <vector>

#include "base/allocation_counter.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using Tokens = std::vector<int32_t>;

struct Guessed {
  Tokens tokens;
  int strength;
};

// Nothing that a look-up wants.
Sampler AnySampler() { return *Sampler::Create({}, 16); }

Guessed Propose(LookupProposer& proposer, int32_t slot, const Tokens& tokens,
                size_t most) {
  Tokens guesses(most);
  const Proposal proposal =
      proposer.Propose(slot, tokens, AnySampler(), absl::MakeSpan(guesses));
  guesses.resize(proposal.tokens);
  return {guesses, proposal.strength};
}

TEST(LookupProposer, GoesOnAsTheTextWentOnBefore) {
  LookupProposer proposer;
  ASSERT_TRUE(proposer.Prepare(2, 100, 4).ok());
  EXPECT_EQ(Propose(proposer, 0, {1}, 4).tokens, Tokens());
  EXPECT_EQ(Propose(proposer, 0, {1, 2}, 4).tokens, Tokens());
  EXPECT_EQ(Propose(proposer, 0, {1, 2, 3, 4, 5}, 4).tokens, Tokens());
  EXPECT_EQ(Propose(proposer, 0, {1, 2, 3, 4, 5, 1}, 4).tokens, Tokens());
  EXPECT_EQ(Propose(proposer, 0, {1, 2, 3, 4, 5, 1, 2}, 4).tokens,
            Tokens({3, 4, 5, 1}));
  // Of another slot nothing is known here.
  EXPECT_EQ(Propose(proposer, 1, {1, 2}, 4).tokens, Tokens());
  proposer.Begin(0, 0);
  EXPECT_EQ(Propose(proposer, 0, {9, 8, 7}, 4).tokens, Tokens());
  EXPECT_EQ(Propose(proposer, 0, {9, 8, 7, 1, 2}, 4).tokens, Tokens());
}

TEST(LookupProposer, TheLongestMatchWinsThenTheLast) {
  LookupProposer proposer;
  ASSERT_TRUE(proposer.Prepare(1, 100, 4).ok());
  EXPECT_EQ(Propose(proposer, 0, {1, 2, 7, 3, 2, 8, 0, 1, 2}, 1).tokens,
            Tokens({7}));
  proposer.Begin(0, 0);
  const Guessed longest =
      Propose(proposer, 0, {4, 1, 2, 7, 5, 1, 2, 8, 0, 4, 1, 2}, 1);
  EXPECT_EQ(longest.tokens, Tokens({7}));
  EXPECT_EQ(longest.strength, 0);
  proposer.Begin(0, 0);
  EXPECT_EQ(Propose(proposer, 0, {1, 2, 7, 1, 2, 8, 0, 1, 2}, 1).tokens,
            Tokens({8}));
}

TEST(LookupProposer, WhatRepeatsItselfGoesOnBehindTheEnd) {
  LookupProposer proposer;
  ASSERT_TRUE(proposer.Prepare(1, 100, 7).ok());
  EXPECT_EQ(Propose(proposer, 0, {1, 2, 3, 1, 2, 3}, 7).tokens,
            Tokens({1, 2, 3, 1, 2, 3, 1}));
  proposer.Begin(0, 0);
  EXPECT_EQ(Propose(proposer, 0, {5, 5, 5}, 3).tokens, Tokens({5, 5, 5}));
}

TEST(LookupProposer, StrengthIsHowMuchAgrees) {
  Tokens text(40);
  std::iota(text.begin(), text.end(), 0);
  for (const int agree : {2, 3, 4, 7, 8, 20}) {
    LookupProposer proposer;
    ASSERT_TRUE(proposer.Prepare(1, 100, 4).ok());
    Tokens tokens = text;
    tokens.push_back(100);
    tokens.insert(tokens.end(), text.begin() + 30 - agree, text.begin() + 30);
    const Guessed guessed = Propose(proposer, 0, tokens, 2);
    EXPECT_EQ(guessed.tokens, Tokens({30, 31}));
    EXPECT_EQ(guessed.strength, agree < 4 ? 0 : agree < 8 ? 1 : 2) << agree;
  }
}

TEST(LookupProposer, LooksInOtherTextsToo) {
  LookupProposer proposer({{1, 2, 3}, {4, 5, 6, 7}});
  ASSERT_TRUE(proposer.Prepare(1, 100, 4).ok());
  EXPECT_EQ(Propose(proposer, 0, {9, 1, 2}, 4).tokens, Tokens({3}));
  EXPECT_EQ(Propose(proposer, 0, {9, 1, 2, 4, 5}, 4).tokens, Tokens({6, 7}));
  // Not over the border between them.
  EXPECT_EQ(Propose(proposer, 0, {9, 1, 2, 4, 5, 2, 3}, 4).tokens, Tokens());
  // Its own text, where both agree as much.
  EXPECT_EQ(Propose(proposer, 0, {9, 1, 2, 4, 5, 2, 3, 8, 4, 5}, 1).tokens,
            Tokens({2}));
}

// As a search through the whole text gives it, where it is not too common.
TEST(LookupProposer, FindsWhatASearchFinds) {
  std::mt19937 random(1);
  LookupProposer proposer;
  constexpr int kMost = 400;
  ASSERT_TRUE(proposer.Prepare(1, kMost, 1).ok());
  Tokens tokens;
  for (int i = 0; i < kMost; ++i) {
    tokens.push_back(random() % 12);
    const int64_t size = tokens.size();
    int64_t longest = 1, expected = -1;
    for (int64_t end = size - 1; end > 1; --end) {
      int64_t same = 0;
      while (same < end && tokens[end - 1 - same] == tokens[size - 1 - same]) {
        ++same;
      }
      if (same > longest) {
        longest = same;
        expected = tokens[end];
      }
    }
    const Tokens guess = Propose(proposer, 0, tokens, 1).tokens;
    ASSERT_EQ(guess, expected < 0 ? Tokens() : Tokens({int32_t(expected)}));
  }
}

TEST(LookupProposer, AllocatesNothing) {
  LookupProposer proposer;
  ASSERT_TRUE(proposer.Prepare(1, 1000, 8).ok());
  Tokens tokens, guesses(8);
  tokens.reserve(1200);
  const Sampler sampler = AnySampler();
  const int64_t before = AllocationCount();
  // Also where a text is longer than was said.
  for (int i = 0; i < 1200; ++i) {
    tokens.push_back(i % 37);
    proposer.Propose(0, tokens, sampler, absl::MakeSpan(guesses));
  }
  proposer.Begin(0, 0);
  EXPECT_EQ(AllocationCount(), before);
}

}  // namespace
}  // namespace weft
