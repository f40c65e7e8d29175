#include "text/grammar/automaton.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace weft::grammar {
namespace {

// Units of work (automaton.h), as measured.
constexpr int64_t kPlaceWork = 4;   // to look a place up, to sort and keep it
constexpr int64_t kReachWork = 1;   // to note a place that is reached
constexpr int64_t kCallWork = 4;    // to find the stack of a call as well
constexpr int64_t kTableWork = 64;  // to make the table of a set's next ones

}  // namespace

Automaton::Automaton(const Compiled* compiled) : compiled_(compiled) {
  stacks_.emplace_back(-1, 0);
  Intern({}, false);  // kDead
}

int32_t Automaton::Push(int32_t then, int32_t below) {
  const auto [it, is_new] = stack_ids_.try_emplace(
      std::make_pair(then, below), static_cast<int32_t>(stacks_.size()));
  if (is_new) stacks_.emplace_back(then, below);
  return it->second;
}

int32_t Automaton::SetAt(Place place) { return Close({place}); }

int32_t Automaton::Close(Places seeds) {
  absl::flat_hash_set<Place> seen;
  Places work = std::move(seeds), places;
  bool ended = false;
  const auto reach = [&](int32_t state, int32_t stack) {
    work.push_back({state, stack});
  };
  while (!work.empty()) {
    const Place place = work.back();
    work.pop_back();
    if (!seen.insert(place).second) continue;
    if (seen.size() > kMaxPlaces) {
      too_ambiguous_ = true;
      return kDead;
    }
    const Compiled::State& state = compiled_->state(place.state);
    if (!Spend(kPlaceWork +
               kReachWork * static_cast<int64_t>(state.empty.size()) +
               kCallWork * static_cast<int64_t>(state.calls.size()))) {
      return kDead;
    }
    if (!state.bytes.empty()) places.push_back(place);
    for (const int32_t next : state.empty) reach(next, place.stack);
    for (const Compiled::Call& call : state.calls) {
      reach(call.rule, call.then == Compiled::kReturn
                           ? place.stack
                           : Push(call.then, place.stack));
    }
    if (!state.ends_rule) continue;
    if (place.stack == 0) {
      ended = true;
    } else {
      const Place below = Below(place.stack);
      reach(below.state, below.stack);
    }
  }
  std::sort(places.begin(), places.end());
  return Intern(std::move(places), ended);
}

int32_t Automaton::Intern(Places places, bool ended) {
  const auto [it, is_new] =
      set_ids_.try_emplace(std::make_pair(places, ended), set_count());
  if (is_new) sets_.push_back({std::move(places), ended, nullptr});
  return it->second;
}

int32_t Automaton::Step(int32_t set, uint8_t byte) {
  if (set == kDead || overworked_) return kDead;
  if (sets_[set].next == nullptr) {
    sets_[set].next = std::make_unique<std::array<int32_t, 256>>();
    sets_[set].next->fill(-1);
    if (!Spend(kTableWork)) return kDead;
  }
  if ((*sets_[set].next)[byte] >= 0) return (*sets_[set].next)[byte];
  Places seeds;
  for (const Place& place : sets_[set].places) {
    const std::vector<Compiled::ByteEdge>& edges =
        compiled_->state(place.state).bytes;
    if (!Spend(1 + static_cast<int64_t>(edges.size()))) return kDead;
    for (const Compiled::ByteEdge& edge : edges) {
      if (byte >= edge.first && byte <= edge.last) {
        seeds.push_back({edge.to, place.stack});
      }
    }
  }
  const int32_t next = seeds.empty() ? kDead : Close(std::move(seeds));
  (*sets_[set].next)[byte] = next;
  return next;
}

int32_t Automaton::ForgetAllBut(int32_t set) {
  Places places = std::move(sets_[set].places);
  const bool ended = sets_[set].ended;
  sets_.clear();
  set_ids_.clear();
  Intern({}, false);
  return Intern(std::move(places), ended);
}

std::unique_ptr<Automaton> Automaton::WithOnly(int32_t set,
                                               int32_t* copied) const {
  auto made = std::make_unique<Automaton>(compiled_);
  made->stacks_ = stacks_;
  made->stack_ids_ = stack_ids_;
  made->too_ambiguous_ = too_ambiguous_;
  made->overworked_ = overworked_;
  *copied = made->Intern(sets_[set].places, sets_[set].ended);
  return made;
}

}  // namespace weft::grammar
