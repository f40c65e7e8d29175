// Where a text stands in a grammar, and what a byte makes of it.
//
// Idea: a place is a state with the stacks of states to return to; since
// grammars are ambiguous, a text stands at a set of places. All the ways in
// which a text comes to one state are one place: their stacks are merged, top
// first, so that ambiguity costs no more places than there are states. A stack
// set is a list of frames, each a state to return to and the stack set below;
// equal ones have one number, so a place is two numbers. Sets of places are
// numbered, too, and what a byte makes of a set is remembered: an automaton
// that is made while it runs. Recursion in the grammar costs entries here,
// never stack of the program.
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

  // What one automaton may hold; beyond, it counts as overworked.
  static constexpr int64_t kMaxBytes = int64_t{32} << 20;

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

  // The set of where places with this stack return to.
  int32_t SetBelow(int32_t stack);

  // What is held; more with every new set.
  int64_t bytes() const { return bytes_; }
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

  // A state to return to and the stack below it; kBottom: the text's end.
  struct Frame {
    int32_t then, below;
    friend bool operator==(const Frame& a, const Frame& b) {
      return a.then == b.then && a.below == b.below;
    }
    friend bool operator<(const Frame& a, const Frame& b) {
      return a.then != b.then ? a.then < b.then : a.below < b.below;
    }
    template <typename H>
    friend H AbslHashValue(H h, const Frame& frame) {
      return H::combine(std::move(h), frame.then, frame.below);
    }
  };
  using Frames = std::vector<Frame>;
  static constexpr int32_t kBottom = -1;

  void Hold(int64_t bytes) {
    bytes_ += bytes;
    if (bytes_ > kMaxBytes) overworked_ = true;
  }
  int32_t InternStack(Frames frames);
  // Both stack sets in one. Beyond some depth, equal frames on top are left
  // side by side, which means the same and takes more room.
  int32_t Merge(int32_t a, int32_t b, int depth);
  // Adds where places with this stack return to; whether that is the end.
  bool AddReturns(int32_t stack, Places* places) const;
  // The set of all places that are reached from `seeds` for nothing.
  int32_t Close(Places seeds, bool ended = false);
  int32_t Intern(Places places, bool ended);
  // Finds out which bytes lead nowhere, once.
  void MakeTable(int32_t set);

  const Compiled* compiled_;
  // What is below a stack has a lower number.
  std::vector<Frames> stacks_;  // frames in order
  absl::flat_hash_map<Frames, int32_t> stack_ids_;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int32_t> merged_;
  std::vector<Set> sets_;
  absl::flat_hash_map<std::pair<Places, bool>, int32_t> set_ids_;
  int64_t work_left_ = std::numeric_limits<int64_t>::max();
  int64_t bytes_ = 0;
  bool too_ambiguous_ = false;
  bool overworked_ = false;
};

}  // namespace weft::grammar
