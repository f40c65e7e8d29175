#include "passes/buffer_planner.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "passes/check_plan.h"
#include "passes/fit_by_parts.h"

namespace weft {
namespace {

constexpr struct {
  PlanStrategy strategy;
  const char* name;
} kStrategies[] = {
    {PlanStrategy::kSearch, "search"},
    {PlanStrategy::kBySize, "by-size"},
    {PlanStrategy::kFirstUse, "first-use"},
    {PlanStrategy::kNoReuse, "no-reuse"},
};

// Comparisons of two buffers that the search may spend: 30 to 60 ms.
constexpr int64_t kSearchWork = 8'000'000;

using Order = std::vector<int32_t>;

struct Layout {
  std::vector<int64_t> offsets;
  int64_t arena_bytes = 0;
};

// The same numbers on every platform, unlike the distributions of <random>.
class SplitMix64 {
 public:
  uint64_t Below(uint64_t bound) {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % bound;
  }

 private:
  uint64_t state_ = 0;
};

int64_t RoundUp(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

// What shares storage is one buffer; the rest of this file knows only buffers.
// For each record the index of its buffer.
std::vector<Buffer> UniteSharing(absl::Span<const Lifetime> lifetimes,
                                 std::vector<int32_t>* buffer_of) {
  std::vector<Buffer> buffers;
  for (const Lifetime& life : lifetimes) {
    if (life.share < 0) {
      buffer_of->push_back(static_cast<int32_t>(buffers.size()));
      buffers.push_back({life.first, life.last, RoundUp(life.bytes)});
      continue;
    }
    const int32_t index = (*buffer_of)[life.share];
    buffer_of->push_back(index);
    Buffer& buffer = buffers[index];
    buffer.first = std::min(buffer.first, life.first);
    buffer.last = std::max(buffer.last, life.last);
    buffer.bytes = std::max(buffer.bytes, RoundUp(life.bytes));
  }
  return buffers;
}

int64_t LargestLiveSet(const std::vector<Buffer>& buffers) {
  // Step and change of the bytes alive; at one step births come after the
  // deaths of the step before, which are entered there as last + 1.
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const Buffer& buffer : buffers) {
    changes.emplace_back(buffer.first, buffer.bytes);
    changes.emplace_back(int64_t{buffer.last} + 1, -buffer.bytes);
  }
  std::sort(changes.begin(), changes.end());
  int64_t alive = 0;
  int64_t largest = 0;
  for (const auto& [step, change] : changes) {
    alive += change;
    largest = std::max(largest, alive);
  }
  return largest;
}

// Places buffers in the order given, each in the smallest sufficient gap left
// by those alive with it. Stops, with an arena of at least `give_up`, once that
// is certain. Adds the comparisons made to `work`.
Layout Place(const std::vector<Buffer>& buffers, const Order& order,
             int64_t give_up, int64_t* work) {
  Layout layout;
  layout.offsets.assign(buffers.size(), 0);
  std::vector<int32_t> placed;  // by offset
  placed.reserve(buffers.size());
  for (const int32_t index : order) {
    const Buffer& buffer = buffers[index];
    if (buffer.bytes == 0) continue;
    int64_t best_gap = std::numeric_limits<int64_t>::max();
    int64_t best_offset = -1;
    int64_t top = 0;  // end of the buffers alive with this one, so far
    for (const int32_t other_index : placed) {
      const Buffer& other = buffers[other_index];
      if (other.last < buffer.first || buffer.last < other.first) continue;
      const int64_t offset = layout.offsets[other_index];
      const int64_t gap = offset - top;
      if (gap >= buffer.bytes && gap < best_gap) {
        best_gap = gap;
        best_offset = top;
      }
      top = std::max(top, offset + other.bytes);
    }
    *work += static_cast<int64_t>(placed.size()) + 1;
    if (best_offset < 0) best_offset = top;
    layout.offsets[index] = best_offset;
    layout.arena_bytes =
        std::max(layout.arena_bytes, best_offset + buffer.bytes);
    if (layout.arena_bytes >= give_up) return layout;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), best_offset,
                                   [&](int64_t value, int32_t element) {
                                     return value < layout.offsets[element];
                                   }),
                  index);
  }
  return layout;
}

Layout PlaceAll(const std::vector<Buffer>& buffers, const Order& order,
                int64_t* work) {
  return Place(buffers, order, std::numeric_limits<int64_t>::max(), work);
}

Layout PlaceApart(const std::vector<Buffer>& buffers) {
  Layout layout;
  for (const Buffer& buffer : buffers) {
    layout.offsets.push_back(layout.arena_bytes);
    layout.arena_bytes += buffer.bytes;
  }
  return layout;
}

template <typename Key>
Order OrderBy(const std::vector<Buffer>& buffers, Key key) {
  Order order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return key(buffers[a]) < key(buffers[b]);
  });
  return order;
}

// The larger first; of equal ones the longer life, which is harder to place.
Order BySize(const std::vector<Buffer>& buffers) {
  return OrderBy(buffers, [](const Buffer& b) {
    return std::make_pair(-b.bytes, int64_t{b.first} - b.last);
  });
}

Order ByArea(const std::vector<Buffer>& buffers) {
  return OrderBy(buffers, [](const Buffer& b) {
    return -static_cast<double>(b.bytes) * (int64_t{b.last} - b.first + 1);
  });
}

Order ByFirstUse(const std::vector<Buffer>& buffers) {
  return OrderBy(buffers, [](const Buffer& b) { return b.first; });
}

// The bound itself, layer by layer, where orders by a rule miss it. Else hill
// climbing over the order: a buffer that sticks out above the bound is moved to
// an earlier turn, where lower gaps are still free. Equal results are taken
// too, to cross plateaus.
Layout Search(const std::vector<Buffer>& buffers, int64_t bound) {
  int64_t work = 0;
  Order order = BySize(buffers);
  Layout best = PlaceAll(buffers, order, &work);
  for (Order other : {ByArea(buffers), ByFirstUse(buffers)}) {
    if (best.arena_bytes == bound) return best;
    Layout layout = Place(buffers, other, best.arena_bytes, &work);
    if (layout.arena_bytes < best.arena_bytes) {
      best = std::move(layout);
      order = std::move(other);
    }
  }
  if (best.arena_bytes == bound) return best;
  if (auto offsets = FitByParts(buffers, bound)) {
    return {std::move(*offsets), bound};
  }
  SplitMix64 random;
  std::vector<size_t> turns;
  while (best.arena_bytes > bound && work < kSearchWork) {
    turns.clear();
    for (size_t turn = 1; turn < order.size(); ++turn) {
      const int32_t index = order[turn];
      if (best.offsets[index] + buffers[index].bytes > bound) {
        turns.push_back(turn);
      }
    }
    // Nobody but the first in turn sticks out: impossible, as it lies at 0.
    if (turns.empty()) break;
    work += static_cast<int64_t>(order.size());
    Order trial = order;
    // Mostly the offender itself; at times any buffer, to leave a dead end.
    const size_t from = random.Below(4) != 0
                            ? turns[random.Below(turns.size())]
                            : 1 + random.Below(order.size() - 1);
    const size_t to = random.Below(from);
    std::rotate(trial.begin() + to, trial.begin() + from,
                trial.begin() + from + 1);
    Layout layout = Place(buffers, trial, best.arena_bytes + 1, &work);
    if (layout.arena_bytes <= best.arena_bytes) {
      best = std::move(layout);
      order = std::move(trial);
    }
  }
  return best;
}

Layout MakeLayout(const std::vector<Buffer>& buffers, PlanStrategy strategy,
                  int64_t bound) {
  int64_t work = 0;
  switch (strategy) {
    case PlanStrategy::kSearch:
      return Search(buffers, bound);
    case PlanStrategy::kBySize:
      return PlaceAll(buffers, BySize(buffers), &work);
    case PlanStrategy::kFirstUse:
      return PlaceAll(buffers, ByFirstUse(buffers), &work);
    case PlanStrategy::kNoReuse:
      break;
  }
  return PlaceApart(buffers);
}

}  // namespace

const char* Name(PlanStrategy strategy) {
  for (const auto& row : kStrategies) {
    if (row.strategy == strategy) return row.name;
  }
  return "";
}

std::optional<PlanStrategy> PlanStrategyFromName(absl::string_view name) {
  for (const auto& row : kStrategies) {
    if (name == row.name) return row.strategy;
  }
  return std::nullopt;
}

absl::StatusOr<BufferPlan> PlanArena(absl::Span<const Lifetime> lifetimes,
                                       PlanStrategy strategy) {
  absl::Status legal = CheckLifetimes(lifetimes);
  if (!legal.ok()) return legal;
  std::vector<int32_t> buffer_of;
  buffer_of.reserve(lifetimes.size());
  const std::vector<Buffer> buffers = UniteSharing(lifetimes, &buffer_of);

  BufferPlan plan;
  plan.lower_bound = LargestLiveSet(buffers);
  for (const Buffer& buffer : buffers) plan.sum_of_buffers += buffer.bytes;
  const Layout layout = MakeLayout(buffers, strategy, plan.lower_bound);
  plan.arena_bytes = layout.arena_bytes;
  plan.offsets.reserve(lifetimes.size());
  for (const int32_t index : buffer_of) {
    plan.offsets.push_back(layout.offsets[index]);
  }
  absl::Status sound = CheckPlan(lifetimes, plan.offsets, plan.arena_bytes);
  if (!sound.ok()) return sound;
  return plan;
}

}  // namespace weft
