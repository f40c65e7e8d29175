#include "text/grammar/automaton.h"

#include <algorithm>
#include <iterator>

#include "absl/container/flat_hash_set.h"

namespace weft::grammar {
namespace {

// Units of work (automaton.h), as measured.
constexpr int64_t kPlaceWork = 4;   // to look a place up, to sort and keep it
constexpr int64_t kReachWork = 1;   // to note a place that is reached
constexpr int64_t kCallWork = 4;    // to find the stack of a call as well
constexpr int64_t kTableWork = 64;  // to make the table of a set's next ones
constexpr int64_t kMergeWork = 16;  // of two stacks, and for each frame one

constexpr int kMaxMergeDepth = 32;

}  // namespace

Automaton::Automaton(const Compiled* compiled) : compiled_(compiled) {
  InternStack({{kBottom, 0}});
  Intern({}, false);  // kDead
}

int32_t Automaton::InternStack(Frames frames) {
  const int64_t size = static_cast<int64_t>(frames.size() * sizeof(Frame));
  const auto [it, is_new] = stack_ids_.try_emplace(
      std::move(frames), static_cast<int32_t>(stacks_.size()));
  if (is_new) {
    stacks_.push_back(it->first);
    Hold(2 * (size + static_cast<int64_t>(sizeof(Frames)) + 32));
  }
  return it->second;
}

int32_t Automaton::Merge(int32_t a, int32_t b, int depth) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);
  const auto found = merged_.find({a, b});
  if (found != merged_.end()) return found->second;
  Frames frames;
  std::merge(stacks_[a].begin(), stacks_[a].end(), stacks_[b].begin(),
             stacks_[b].end(), std::back_inserter(frames));
  if (!Spend(kMergeWork + static_cast<int64_t>(frames.size()))) return a;
  size_t kept = 0;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (kept == 0 || frames[kept - 1].then != frames[i].then) {
      frames[kept++] = frames[i];
    } else if (depth < kMaxMergeDepth) {
      frames[kept - 1].below =
          Merge(frames[kept - 1].below, frames[i].below, depth + 1);
    } else if (!(frames[kept - 1] == frames[i])) {
      frames[kept++] = frames[i];
    }
  }
  frames.resize(kept);
  const int32_t merged = InternStack(std::move(frames));
  merged_[{a, b}] = merged;
  Hold(32);
  return merged;
}

bool Automaton::AddReturns(int32_t stack, Places* places) const {
  bool ended = false;
  for (const Frame& frame : stacks_[stack]) {
    if (frame.then == kBottom) {
      ended = true;
    } else {
      places->push_back({frame.then, frame.below});
    }
  }
  return ended;
}

int32_t Automaton::SetAt(Place place) { return Close({place}); }

int32_t Automaton::SetBelow(int32_t stack) {
  Places seeds;
  const bool ended = AddReturns(stack, &seeds);
  return Close(std::move(seeds), ended);
}

int32_t Automaton::Close(Places seeds, bool ended) {
  absl::flat_hash_set<Place> seen;
  Places work = std::move(seeds), places;
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
    const Compiled::State state = compiled_->state(place.state);
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
                           : InternStack({{call.then, place.stack}}));
    }
    if (!state.ends_rule) continue;
    const size_t before = work.size();
    if (AddReturns(place.stack, &work)) ended = true;
    if (!Spend(kReachWork * static_cast<int64_t>(work.size() - before))) {
      return kDead;
    }
  }
  std::sort(places.begin(), places.end());
  size_t kept = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    if (kept > 0 && places[kept - 1].state == places[i].state) {
      places[kept - 1].stack =
          Merge(places[kept - 1].stack, places[i].stack, 0);
    } else {
      places[kept++] = places[i];
    }
  }
  if (overworked_) return kDead;
  places.resize(kept);
  return Intern(std::move(places), ended);
}

int32_t Automaton::Intern(Places places, bool ended) {
  const auto [it, is_new] = set_ids_.try_emplace(
      std::make_pair(std::move(places), ended), set_count());
  if (is_new) {
    sets_.push_back({it->first.first, ended, nullptr});
    Hold(static_cast<int64_t>(2 * it->first.first.size() * sizeof(Place) +
                              2 * sizeof(Set) + 32));
  }
  return it->second;
}

void Automaton::MakeTable(int32_t set) {
  auto table = std::make_unique<std::array<int32_t, 256>>();
  table->fill(kDead);
  Hold(sizeof(*table));
  int64_t work = kTableWork;
  for (const Place& place : sets_[set].places) {
    for (const Compiled::ByteEdge& edge : compiled_->state(place.state).bytes) {
      std::fill(table->begin() + edge.first, table->begin() + edge.last + 1,
                -1);
      work += 1 + (edge.last - edge.first) / 16;
    }
    ++work;
  }
  sets_[set].next = std::move(table);
  Spend(work);
}

int32_t Automaton::Step(int32_t set, uint8_t byte) {
  if (set == kDead || overworked_) return kDead;
  if (sets_[set].next == nullptr) {
    MakeTable(set);
    if (overworked_) return kDead;
  }
  if ((*sets_[set].next)[byte] >= 0) return (*sets_[set].next)[byte];
  Places seeds;
  for (const Place& place : sets_[set].places) {
    const absl::Span<const Compiled::ByteEdge> edges =
        compiled_->state(place.state).bytes;
    if (!Spend(1 + static_cast<int64_t>(edges.size()))) return kDead;
    for (const Compiled::ByteEdge& edge : edges) {
      if (byte >= edge.first && byte <= edge.last) {
        seeds.push_back({edge.to, place.stack});
      }
    }
  }
  const int32_t next = Close(std::move(seeds));
  if (!overworked_) (*sets_[set].next)[byte] = next;
  return next;
}

int32_t Automaton::ForgetAllBut(int32_t set) {
  int32_t kept = kDead;
  const std::unique_ptr<Automaton> other = WithOnly(set, &kept);
  *this = std::move(*other);
  return kept;
}

std::unique_ptr<Automaton> Automaton::WithOnly(int32_t set,
                                               int32_t* copied) const {
  auto made = std::make_unique<Automaton>(compiled_);
  made->work_left_ = work_left_;
  made->too_ambiguous_ = too_ambiguous_;
  made->overworked_ = overworked_;
  // The stacks that are still of use: marked from the top, copied from below.
  Places places = sets_[set].places;
  std::vector<int32_t> number(stacks_.size(), -1);
  for (const Place& place : places) number[place.stack] = 0;
  for (size_t i = stacks_.size(); i-- > 1;) {
    if (number[i] < 0) continue;
    for (const Frame& frame : stacks_[i]) number[frame.below] = 0;
  }
  for (size_t i = 0; i < stacks_.size(); ++i) {
    if (number[i] < 0) continue;
    Frames frames = stacks_[i];
    for (Frame& frame : frames) frame.below = number[frame.below];
    std::sort(frames.begin(), frames.end());
    number[i] = i == 0 ? 0 : made->InternStack(std::move(frames));
  }
  for (Place& place : places) place.stack = number[place.stack];
  std::sort(places.begin(), places.end());
  *copied = made->Intern(std::move(places), sets_[set].ended);
  return made;
}

}  // namespace weft::grammar
