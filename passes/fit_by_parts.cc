#include "passes/fit_by_parts.h"

#include <algorithm>
#include <array>
#include <map>

namespace weft {
namespace {

// Comparisons that all parts together may cost: a few milliseconds.
constexpr int64_t kWork = 2'000'000;

// A layer has about 25.
constexpr size_t kMostBuffers = 64;

constexpr int kNobody = -1;

// Where a buffer that lives on lies.
enum End { kBottom, kTop };
constexpr End kEnds[] = {kBottom, kTop};

using Offsets = std::vector<int64_t>;

struct Part {
  int32_t begin;  // steps
  int32_t end;
  std::vector<int> buffers;
  int enters = kNobody;  // the buffer that it has in common with the one before
  int leaves = kNobody;  // and with the next
};

// Steps in which nothing is born say nothing: the rest is numbered anew, so
// that there are no more steps than buffers. Returns how many there are.
int32_t NumberSteps(std::vector<Buffer>* buffers) {
  std::vector<int32_t> births;
  for (const Buffer& buffer : *buffers) births.push_back(buffer.first);
  std::sort(births.begin(), births.end());
  births.erase(std::unique(births.begin(), births.end()), births.end());
  // How many births there are up to this step.
  const auto number = [&births](int32_t step) {
    return static_cast<int32_t>(
        std::upper_bound(births.begin(), births.end(), step) - births.begin());
  };
  for (Buffer& buffer : *buffers) {
    buffer.first = number(buffer.first) - 1;
    buffer.last = number(buffer.last) - 1;
  }
  return static_cast<int32_t>(births.size());
}

// Cut wherever at most one buffer lives on.
std::vector<Part> PartsOf(const std::vector<Buffer>& buffers, int32_t steps) {
  // How many are alive both in this step and in the one before, and the sum of
  // their numbers, which is the number of the only one.
  std::vector<int32_t> count(steps + 1, 0);
  std::vector<int64_t> sum(steps + 1, 0);
  for (size_t i = 0; i < buffers.size(); ++i) {
    ++count[buffers[i].first + 1];
    --count[buffers[i].last + 1];
    sum[buffers[i].first + 1] += static_cast<int64_t>(i);
    sum[buffers[i].last + 1] -= static_cast<int64_t>(i);
  }
  std::vector<Part> parts = {{0, steps, {}}};
  std::vector<size_t> part_of = {0};
  for (int32_t step = 1; step < steps; ++step) {
    count[step] += count[step - 1];
    sum[step] += sum[step - 1];
    if (count[step] <= 1) {
      parts.back().end = step;
      parts.back().leaves =
          count[step] == 0 ? kNobody : static_cast<int>(sum[step]);
      parts.push_back({step, steps, {}, parts.back().leaves});
    }
    part_of.push_back(parts.size() - 1);
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    for (size_t part = part_of[buffers[i].first];
         part <= part_of[buffers[i].last]; ++part) {
      parts[part].buffers.push_back(static_cast<int>(i));
    }
  }
  return parts;
}

class Fitter {
 public:
  Fitter(const std::vector<Buffer>& buffers, int64_t arena_bytes)
      : buffers_(buffers), arena_bytes_(arena_bytes) {}

  // The offsets of a part's buffers, or null. The result lives as long as this.
  const Offsets* Fit(const Part& part, End enters, End leaves) {
    if (part.buffers.size() > kMostBuffers) return nullptr;
    const size_t steps = part.end - part.begin;
    FreeSpace space = {std::vector<int64_t>(steps, 0),
                       std::vector<int64_t>(steps, arena_bytes_)};
    std::vector<Buffer> free;
    Offsets offsets;  // -1: to be found
    std::vector<int64_t> key;
    for (const int index : part.buffers) {
      Buffer buffer = buffers_[index];
      buffer.first = std::max(buffer.first, part.begin) - part.begin;
      buffer.last = std::min(buffer.last, part.end - 1) - part.begin;
      int64_t offset = -1;
      if (index == part.enters || index == part.leaves) {
        const End end = index == part.enters ? enters : leaves;
        offset = end == kBottom ? 0 : arena_bytes_ - buffer.bytes;
        if (!Occupy(buffer, end, &space)) return nullptr;
      } else {
        free.push_back(buffer);
      }
      offsets.push_back(offset);
      key.insert(key.end(), {buffer.first, buffer.last, buffer.bytes, offset});
    }
    const auto [known, is_new] = fits_.try_emplace(std::move(key));
    if (is_new) {
      if (const auto found = FitExactly(free, space, &work_)) {
        auto next = found->begin();
        for (int64_t& offset : offsets) {
          if (offset < 0) offset = *next++;
        }
        known->second = std::move(offsets);
      }
    }
    return known->second.has_value() ? &*known->second : nullptr;
  }

 private:
  bool Occupy(const Buffer& buffer, End end, FreeSpace* space) const {
    for (int32_t t = buffer.first; t <= buffer.last; ++t) {
      if (end == kBottom) {
        // Not two at one end.
        if (space->floor[t] != 0) return false;
        space->floor[t] = buffer.bytes;
      } else {
        if (space->ceiling[t] != arena_bytes_) return false;
        space->ceiling[t] -= buffer.bytes;
      }
      if (space->floor[t] > space->ceiling[t]) return false;
    }
    return true;
  }

  const std::vector<Buffer>& buffers_;
  const int64_t arena_bytes_;
  int64_t work_ = kWork;
  std::map<std::vector<int64_t>, std::optional<Offsets>> fits_;
};

// How a part can be left with the buffer that leaves it at one end.
struct Way {
  const Offsets* offsets = nullptr;
  End entered = kBottom;
};

}  // namespace

std::optional<Offsets> FitByParts(const std::vector<Buffer>& buffers,
                                  int64_t arena_bytes) {
  std::vector<size_t> index_of;
  std::vector<Buffer> numbered;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].bytes == 0) continue;
    index_of.push_back(i);
    numbered.push_back(buffers[i]);
  }
  const int32_t steps = NumberSteps(&numbered);
  const std::vector<Part> parts = PartsOf(numbered, steps);
  Fitter fitter(numbered, arena_bytes);
  std::vector<std::array<Way, 2>> ways(parts.size());
  for (size_t p = 0; p < parts.size(); ++p) {
    const Part& part = parts[p];
    for (const End enters : kEnds) {
      const bool reached =
          p == 0 ? enters == kBottom : ways[p - 1][enters].offsets != nullptr;
      if (!reached) continue;
      for (const End leaves : kEnds) {
        if (part.leaves == kNobody && leaves != kBottom) continue;
        if (part.leaves != kNobody && part.leaves == part.enters &&
            leaves != enters) {
          continue;
        }
        Way& way = ways[p][leaves];
        if (way.offsets == nullptr) {
          way = {fitter.Fit(part, enters, leaves), enters};
        }
      }
    }
  }
  Offsets offsets(buffers.size(), 0);
  End leaves = kBottom;
  for (size_t p = parts.size(); p-- > 0;) {
    const Way& way = ways[p][leaves];
    if (way.offsets == nullptr) return std::nullopt;
    for (size_t i = 0; i < parts[p].buffers.size(); ++i) {
      offsets[index_of[parts[p].buffers[i]]] = (*way.offsets)[i];
    }
    leaves = way.entered;
  }
  return offsets;
}

}  // namespace weft
