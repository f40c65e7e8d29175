// Where a text stands in a grammar, and what a byte makes of it.
//
// Idea: a place is a state with a stack of states to return to; since grammars
// are ambiguous, a text stands at a set of places. Stacks share their lower
// parts and are numbered, so a place is two numbers. Sets are numbered, too,
// and what a byte makes of a set is remembered: an automaton that is made while
// it runs. Recursion in the grammar costs entries here, never stack of the
// program.
//
// The text's end below stack 0 is told by `ended`: of a whole grammar it means
// that the text may end; of one state alone, that its rule returns to whoever
// called it.
//
// Work is counted, in units of 4 to 8 ns that depend on nothing but the
// grammar and the bytes, so that no grammar takes a thread for long: whoever
// uses an automaton allows it some, and when it is used up, all goes dead.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "text/grammar/compiled.h"

namespace weft::grammar {

class Automaton {
 public:
  struct Place {
    int32_t state;
    int32_t stack;
    friend bool operator==(const Place& a, const Place& b) {
      return a.state == b.state && a.stack == b.stack;
    }
    friend bool operator<(const Place& a, const Place& b) {
      return a.state != b.state ? a.state < b.state : a.stack < b.stack;
    }
    template <typename H>
    friend H AbslHashValue(H h, const Place& place) {
      return H::combine(std::move(h), place.state, place.stack);
    }
  };
  using Places = std::vector<Place>;
  // The set without places that has not ended: no text goes on there.
  static constexpr int32_t kDead = 0;
  // More places than this are too much ambiguity; the set counts as dead.
  static constexpr size_t kMaxPlaces = 10000;

  // The work of one mask or one token: about 100 ms. A walk over a vocabulary
  // of 128k tokens in a state of JSON takes a sixtieth of it.
  static constexpr int64_t kMaxWork = 20000000;

  explicit Automaton(const Compiled* compiled);

  // What may be done from now on; without this, there is no limit.
  void AllowWork(int64_t units) { work_left_ = units; }
  int64_t work_left() const { return work_left_; }
  // Takes `units` off what is left; false if that was not enough.
  bool Spend(int64_t units) {
    work_left_ -= units;
    if (work_left_ < 0) overworked_ = true;
    return !overworked_;
  }
  // Whether work was once more than allowed: sets may be dead for that alone.
  bool overworked() const { return overworked_; }

  // The set where a text begins at `place`.
  int32_t SetAt(Place place);
  int32_t Step(int32_t set, uint8_t byte);

  const Places& places(int32_t set) const { return sets_[set].places; }
  bool ended(int32_t set) const { return sets_[set].ended; }
  int32_t set_count() const { return static_cast<int32_t>(sets_.size()); }
  // Whether a set was given up for having too many places.
  bool too_ambiguous() const { return too_ambiguous_; }

  // Where a place with this stack, which is not 0, returns to.
  Place Below(int32_t stack) const {
    return {stacks_[stack].first, stacks_[stack].second};
  }

  // Forgets all sets but this one; returns its new number.
  int32_t ForgetAllBut(int32_t set);
  // Another automaton that knows nothing but this set, there numbered `copied`.
  std::unique_ptr<Automaton> WithOnly(int32_t set, int32_t* copied) const;

 private:
  struct Set {
    Places places;  // in order; only those that take a byte
    bool ended = false;
    std::unique_ptr<std::array<int32_t, 256>> next;  // -1: not yet known
  };

  int32_t Push(int32_t then, int32_t below);
  // The set of all places that are reached from `seeds` for nothing.
  int32_t Close(Places seeds);
  int32_t Intern(Places places, bool ended);

  const Compiled* compiled_;
  std::vector<std::pair<int32_t, int32_t>> stacks_;  // return state, below
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int32_t> stack_ids_;
  std::vector<Set> sets_;
  absl::flat_hash_map<std::pair<Places, bool>, int32_t> set_ids_;
  int64_t work_left_ = std::numeric_limits<int64_t>::max();
  bool too_ambiguous_ = false;
  bool overworked_ = false;
};

}  // namespace weft::grammar
