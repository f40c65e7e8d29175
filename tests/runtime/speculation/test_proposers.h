// Proposers of which it is known how often they are right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "runtime/speculation/proposer.h"

namespace weft {

// Any tokens below `vocabulary`, any number of them.
class RandomProposer : public Proposer {
 public:
  explicit RandomProposer(int32_t vocabulary) : vocabulary_(vocabulary) {}

  absl::Status Prepare(int32_t, int64_t, int64_t) override {
    return absl::OkStatus();
  }
  void Begin(int32_t, uint64_t) override {}
  Proposal Propose(int32_t, absl::Span<const int32_t>, const Sampler&,
                   absl::Span<int32_t> guesses) override {
    for (int32_t& guess : guesses) guess = random_() % vocabulary_;
    return {static_cast<int64_t>(random_() % (guesses.size() + 1)),
            static_cast<int>(random_() % kStrengths)};
  }

 private:
  const int32_t vocabulary_;
  std::mt19937 random_{1};
};

// Knows how texts go on, and says so with probability `right` for each token.
class KnowingProposer : public Proposer {
 public:
  // Prompts with the texts behind them.
  KnowingProposer(std::vector<std::vector<int32_t>> texts, double right)
      : texts_(std::move(texts)), right_(right) {}

  absl::Status Prepare(int32_t, int64_t, int64_t) override {
    return absl::OkStatus();
  }
  void Begin(int32_t, uint64_t) override {}
  Proposal Propose(int32_t, absl::Span<const int32_t> tokens, const Sampler&,
                   absl::Span<int32_t> guesses) override {
    for (const std::vector<int32_t>& text : texts_) {
      if (text.size() <= tokens.size() ||
          !std::equal(tokens.begin(), tokens.end(), text.begin())) {
        continue;
      }
      const size_t count =
          std::min(guesses.size(), text.size() - tokens.size());
      for (size_t i = 0; i < count; ++i) {
        const bool is_right = random_() < right_ * 4294967296.0;
        guesses[i] = is_right ? text[tokens.size() + i] : 7;
      }
      return {static_cast<int64_t>(count), 0};
    }
    return {};
  }

 private:
  const std::vector<std::vector<int32_t>> texts_;
  const double right_;
  std::mt19937 random_{1};
};

}  // namespace weft
