// How many tokens are worth guessing: what steps cost, how often guesses come
// true, and the number that gives the most tokens in a second.
//
// Everything here is measured while it is used, and decides about time alone:
// results are the same whatever comes out.
//
// Not thread-safe. Allocates nothing.
#pragma once

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "runtime/speculation/proposer.h"

namespace weft {

// Time of a step by the number of its rows.
class StepCosts {
 public:
  // Steps of more rows are not known.
  static constexpr int64_t kMostRows = 64;
  // What was measured so many steps ago is forgotten, so that a number of rows
  // that once took long for another reason is tried again.
  static constexpr int64_t kForgotten = 512;

  void Add(int64_t rows, double seconds);

  // Expected seconds, in proportion at least; between numbers of rows that were
  // measured on a line, beyond them a little more for each row: what was never
  // tried looks good enough to be tried.
  double Of(int64_t rows) const;

 private:
  struct Cost {
    double seconds = 0;
    int64_t count = 0;  // 0: not known
    int64_t step = 0;   // of the last one
  };
  bool Known(int64_t rows) const;

  std::array<Cost, kMostRows + 1> costs_;
  int64_t steps_ = 0;
};

// How often the guesses of one text come true: at first the mean, with one
// expectation before any, then an average that follows.
class GuessRecord {
 public:
  void Add(int strength, bool right);
  // Of a guess when those before it were right.
  double Probability(int strength) const { return shares_[strength]; }

 private:
  std::array<double, Proposer::kStrengths> shares_ = {0.25, 0.5, 0.75};
  std::array<int32_t, Proposer::kStrengths> counts_{};
};

// What one text has to offer, and how much of it is taken.
struct GuessOffer {
  double probability = 0;
  int64_t most = 0;   // guesses
  int64_t taken = 0;  // result
};

// Chooses how many guesses of whom a step runs, beside `rows` rows that give
// `tokens` tokens in any case, and `room` at most. `each`: seconds that a guess
// takes before the step.
void ShareGuesses(const StepCosts& costs, int64_t rows, double tokens,
                  int64_t room, double each, absl::Span<GuessOffer> offers);

}  // namespace weft
