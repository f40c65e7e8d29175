#include "runtime/speculation/guess_budget.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

// How fast averages follow.
constexpr double kStepShare = 0.125;
constexpr double kGuessShare = 0.0625;
// The first steps of a kind are slower for reasons of their own.
constexpr int64_t kFirstSteps = 4;
// Of a step's time, what one more row takes where nothing is known.
constexpr double kRowShare = 1.0 / 16;
// A row is taken for no cheaper than this, and no less must be won, so that
// noise decides nothing.
constexpr double kLeastRowShare = 0.01;
constexpr double kLeastGain = 1.02;

}  // namespace

bool StepCosts::Known(int64_t rows) const {
  return costs_[rows].count > 0 && steps_ - costs_[rows].step < kForgotten;
}

void StepCosts::Add(int64_t rows, double seconds) {
  if (rows < 1 || rows > kMostRows) return;
  ++steps_;
  Cost& cost = costs_[rows];
  if (!Known(rows)) cost = {seconds, 0, 0};
  if (cost.count < kFirstSteps) {
    cost.seconds = std::min(cost.seconds, seconds);
  } else {
    cost.seconds += kStepShare * (seconds - cost.seconds);
  }
  ++cost.count;
  cost.step = steps_;
}

double StepCosts::Of(int64_t rows) const {
  rows = std::clamp<int64_t>(rows, 1, kMostRows);
  if (Known(rows)) return costs_[rows].seconds;
  int64_t below = rows - 1, above = rows + 1;
  while (below > 0 && !Known(below)) --below;
  while (above <= kMostRows && !Known(above)) ++above;
  const auto grown = [](int64_t from) { return 1 + kRowShare * (from - 1); };
  if (below == 0) {
    if (above > kMostRows) return grown(rows);
    return costs_[above].seconds * grown(rows) / grown(above);
  }
  const double low = costs_[below].seconds;
  if (above > kMostRows) return low * grown(rows) / grown(below);
  const double high = costs_[above].seconds;
  return low + (high - low) * static_cast<double>(rows - below) /
                   static_cast<double>(above - below);
}

void GuessRecord::Add(int strength, bool right) {
  double& share = shares_[strength];
  const double weight = std::max(kGuessShare, 1.0 / (2 + counts_[strength]++));
  share += weight * ((right ? 1.0 : 0.0) - share);
}

void ShareGuesses(const StepCosts& costs, int64_t rows, double tokens,
                  int64_t room, double each, absl::Span<GuessOffer> offers) {
  for (GuessOffer& offer : offers) offer.taken = 0;
  room = std::min(room, StepCosts::kMostRows - rows);
  const double without = costs.Of(rows);
  double best = kLeastGain * tokens / without;
  int64_t best_taken = 0;
  // The most probable one first, whoever's; and of all numbers of them the
  // best. Twice: to find the number, and to take so many.
  for (int round = 0; round < 2; ++round) {
    const int64_t most = round == 0 ? room : best_taken;
    for (GuessOffer& offer : offers) offer.taken = 0;
    double expected = tokens;
    for (int64_t taken = 1; taken <= most; ++taken) {
      GuessOffer* next = nullptr;
      double next_value = 0;
      for (GuessOffer& offer : offers) {
        if (offer.taken == offer.most) continue;
        const double value =
            std::pow(offer.probability, static_cast<double>(offer.taken + 1));
        if (value > next_value) {
          next = &offer;
          next_value = value;
        }
      }
      if (next == nullptr) break;
      ++next->taken;
      expected += next_value;
      const double count = static_cast<double>(taken);
      const double seconds = std::max(costs.Of(rows + taken),
                                      without * (1 + kLeastRowShare * count));
      const double rate = expected / (seconds + each * count);
      if (round == 0 && rate > best) {
        best = rate;
        best_taken = taken;
      }
    }
  }
}

}  // namespace weft
