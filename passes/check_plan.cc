// A sweep over the steps. The buffers alive now are kept in order of offset;
// since they were disjoint so far, a new one need only be compared with its
// neighbours.
#include "passes/check_plan.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// Keeps every sum of sizes far from overflow.
constexpr int64_t kMaxTotalBytes = int64_t{1} << 60;

struct Buffer {
  int32_t first;
  int32_t last;
  int64_t begin;
  int64_t end;
};

absl::Status PlanError(absl::string_view where, absl::string_view what) {
  return absl::InternalError(
      absl::StrCat("buffer plan is not sound: ", where, ": ", what));
}

absl::Status RecordError(size_t record, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("lifetime is not legal: record ", record, ": ", what));
}

// One buffer per record that owns storage, with the life and size of all that
// share it. Others keep last < first.
std::vector<Buffer> MergeSharing(absl::Span<const Lifetime> lifetimes,
                                 absl::Span<const int64_t> offsets) {
  std::vector<Buffer> buffers(lifetimes.size(), Buffer{0, -1, 0, 0});
  std::vector<size_t> owner(lifetimes.size());
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    const Lifetime& life = lifetimes[i];
    owner[i] = life.share < 0 ? i : owner[life.share];
    const int64_t end = offsets[i] + life.bytes;
    Buffer& buffer = buffers[owner[i]];
    if (owner[i] == i) {
      buffer = {life.first, life.last, offsets[i], end};
    } else {
      buffer.first = std::min(buffer.first, life.first);
      buffer.last = std::max(buffer.last, life.last);
      buffer.end = std::max(buffer.end, end);
    }
  }
  return buffers;
}

}  // namespace

absl::Status CheckLifetimes(absl::Span<const Lifetime> lifetimes) {
  int64_t total = 0;
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    const Lifetime& life = lifetimes[i];
    if (life.first < 0 || life.last < life.first) {
      return RecordError(i, absl::StrCat("steps ", life.first, " to ",
                                         life.last, " are no life"));
    }
    if (life.bytes < 0 || life.bytes > kMaxTotalBytes - total) {
      return RecordError(i, absl::StrCat("cannot hold ", life.bytes, " bytes"));
    }
    total += life.bytes;
    if (life.share < -1 || life.share >= static_cast<int64_t>(i)) {
      return RecordError(i, absl::StrCat("shares record ", life.share,
                                         ", which is not an earlier one"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlan(absl::Span<const Lifetime> lifetimes,
                       absl::Span<const int64_t> offsets, int64_t arena_bytes) {
  absl::Status legal = CheckLifetimes(lifetimes);
  if (!legal.ok()) return legal;
  if (offsets.size() != lifetimes.size()) {
    return PlanError("offsets", absl::StrCat(offsets.size(), " for ",
                                             lifetimes.size(), " records"));
  }
  for (size_t i = 0; i < offsets.size(); ++i) {
    const std::string where = absl::StrCat("record ", i);
    if (offsets[i] < 0 || offsets[i] % kBufferAlignment != 0) {
      return PlanError(
          where, absl::StrCat("offset ", offsets[i], " is no multiple of ",
                              kBufferAlignment));
    }
    if (lifetimes[i].bytes > arena_bytes ||
        offsets[i] > arena_bytes - lifetimes[i].bytes) {
      return PlanError(
          where, absl::StrCat(lifetimes[i].bytes, " bytes at ", offsets[i],
                              " leave the arena of ", arena_bytes));
    }
    const int32_t share = lifetimes[i].share;
    if (share >= 0 && offsets[share] != offsets[i]) {
      return PlanError(where,
                       absl::StrCat("at ", offsets[i], ", but record ", share,
                                    " that it shares is at ", offsets[share]));
    }
  }

  const std::vector<Buffer> buffers = MergeSharing(lifetimes, offsets);
  std::vector<size_t> births;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (buffer.last >= buffer.first && buffer.end > buffer.begin) {
      births.push_back(i);
    }
  }
  std::vector<size_t> deaths = births;
  std::sort(births.begin(), births.end(), [&](size_t a, size_t b) {
    return buffers[a].first < buffers[b].first;
  });
  std::sort(deaths.begin(), deaths.end(), [&](size_t a, size_t b) {
    return buffers[a].last < buffers[b].last;
  });
  std::map<int64_t, size_t> alive;  // offset to record
  size_t next_death = 0;
  for (const size_t born : births) {
    const Buffer& buffer = buffers[born];
    // Whoever died before this birth was itself born before it.
    while (buffers[deaths[next_death]].last < buffer.first) {
      alive.erase(buffers[deaths[next_death]].begin);
      ++next_death;
    }
    const auto above = alive.lower_bound(buffer.begin);
    size_t other = born;
    if (above != alive.end() && above->first < buffer.end) {
      other = above->second;
    } else if (above != alive.begin() &&
               buffers[std::prev(above)->second].end > buffer.begin) {
      other = std::prev(above)->second;
    }
    if (other != born) {
      return PlanError(
          absl::StrCat("records ", other, " and ", born),
          absl::StrCat("both alive in step ", buffer.first, ", at bytes ",
                       buffers[other].begin, "-", buffers[other].end, " and ",
                       buffer.begin, "-", buffer.end));
    }
    alive.emplace(buffer.begin, born);
  }
  return absl::OkStatus();
}

}  // namespace weft
