#include "passes/fit_exactly.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace weft {
namespace {

class Search {
 public:
  Search(const std::vector<Buffer>& buffers, const FreeSpace& space,
         int64_t* work)
      : buffers_(buffers),
        ceiling_(space.ceiling),
        work_(*work),
        skyline_(space.floor),
        to_come_(space.floor.size(), 0),
        offsets_(buffers.size(), kNotPlaced) {
    for (const Buffer& buffer : buffers_) {
      for (int32_t t = buffer.first; t <= buffer.last; ++t) {
        to_come_[t] += buffer.bytes;
      }
    }
  }

  // `below` is the buffer placed last, at `lowest`: the rest lie above it, or
  // beside it and after it in number.
  bool Fits(int below, int64_t lowest) {
    const std::vector<int64_t> rest = RestOn();
    std::vector<int> candidates;
    if (!Candidates(rest, below, lowest, &candidates)) return false;
    if (candidates.empty()) return Done();
    for (const int index : candidates) {
      const Buffer& buffer = buffers_[index];
      const std::vector<int64_t> before(skyline_.begin() + buffer.first,
                                        skyline_.begin() + buffer.last + 1);
      for (int32_t t = buffer.first; t <= buffer.last; ++t) {
        skyline_[t] = rest[index] + buffer.bytes;
        to_come_[t] -= buffer.bytes;
      }
      offsets_[index] = rest[index];
      if (Fits(index, rest[index])) return true;
      if (work_ <= 0) return false;
      offsets_[index] = kNotPlaced;
      std::copy(before.begin(), before.end(), skyline_.begin() + buffer.first);
      for (int32_t t = buffer.first; t <= buffer.last; ++t) {
        to_come_[t] += buffer.bytes;
      }
    }
    return false;
  }

  std::vector<int64_t> TakeOffsets() { return std::move(offsets_); }

 private:
  static constexpr int64_t kNotPlaced = -1;

  bool Done() const {
    return std::count(offsets_.begin(), offsets_.end(), kNotPlaced) == 0;
  }

  // Where each buffer still to come would lie if it came next.
  std::vector<int64_t> RestOn() {
    std::vector<int64_t> rest(buffers_.size(), 0);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (offsets_[i] != kNotPlaced) continue;
      const auto begin = skyline_.begin();
      rest[i] = *std::max_element(begin + buffers_[i].first,
                                  begin + buffers_[i].last + 1);
      work_ -= buffers_[i].last - buffers_[i].first + 1;
    }
    return rest;
  }

  // Who may come next, the most promising first. False if what is to come
  // cannot fit any more.
  bool Candidates(const std::vector<int64_t>& rest, int below, int64_t lowest,
                  std::vector<int>* candidates) {
    constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
    std::vector<int64_t> starts(skyline_.size(), kNone);
    int64_t end_of_one = kNone;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (offsets_[i] != kNotPlaced) continue;
      const int64_t start = std::max(rest[i], lowest);
      end_of_one = std::min(end_of_one, start + buffers_[i].bytes);
      for (int32_t t = buffers_[i].first; t <= buffers_[i].last; ++t) {
        starts[t] = std::min(starts[t], start);
      }
    }
    for (size_t t = 0; t < starts.size(); ++t) {
      if (starts[t] != kNone && starts[t] + to_come_[t] > ceiling_[t]) {
        return false;
      }
    }
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const bool in_turn = rest[i] > lowest ||
                           (rest[i] == lowest && static_cast<int>(i) > below);
      // From `end_of_one` on, that one would have fitted below.
      if (offsets_[i] == kNotPlaced && in_turn && rest[i] < end_of_one) {
        candidates->push_back(static_cast<int>(i));
      }
    }
    std::stable_sort(candidates->begin(), candidates->end(), [&](int a, int b) {
      return rest[a] != rest[b] ? rest[a] < rest[b]
                                : buffers_[a].bytes > buffers_[b].bytes;
    });
    return true;
  }

  const std::vector<Buffer>& buffers_;
  const std::vector<int64_t>& ceiling_;
  int64_t& work_;
  std::vector<int64_t> skyline_;  // end of what is placed, at each step
  std::vector<int64_t> to_come_;  // bytes alive at each step, not yet placed
  std::vector<int64_t> offsets_;
};

}  // namespace

std::optional<std::vector<int64_t>> FitExactly(
    const std::vector<Buffer>& buffers, const FreeSpace& space, int64_t* work) {
  if (*work <= 0) return std::nullopt;
  Search search(buffers, space, work);
  if (!search.Fits(-1, 0)) return std::nullopt;
  return search.TakeOffsets();
}

}  // namespace weft
