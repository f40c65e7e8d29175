#include "runtime/speculation/token_index.h"

#include <algorithm>

namespace weft {
namespace {

int64_t Buckets(int64_t most_tokens) {
  int64_t buckets = 64;
  while (buckets < most_tokens) buckets *= 2;
  return buckets;
}

}  // namespace

TokenIndex::TokenIndex(int64_t most_tokens)
    : last_(Buckets(most_tokens)), before_(most_tokens + 1) {}

int64_t TokenIndex::BytesFor(int64_t most_tokens) {
  return static_cast<int64_t>(sizeof(int32_t)) *
         (Buckets(most_tokens) + most_tokens + 1);
}

void TokenIndex::Clear() {
  if (known_ == 0) return;
  known_ = 0;
  std::fill(last_.begin(), last_.end(), 0);
}

uint32_t TokenIndex::BucketOf(int32_t first, int32_t second) const {
  const uint64_t pair = uint64_t{static_cast<uint32_t>(first)} << 32 |
                        static_cast<uint32_t>(second);
  return static_cast<uint32_t>(pair * 0x9e3779b97f4a7c15u >> 32) &
         static_cast<uint32_t>(last_.size() - 1);
}

// A place without anything behind it is not put in yet.
void TokenIndex::Extend(absl::Span<const int32_t> tokens) {
  const int64_t end = std::min(static_cast<int64_t>(tokens.size()),
                               static_cast<int64_t>(before_.size()));
  for (int64_t place = std::max<int64_t>(known_ + 1, 2); place < end; ++place) {
    int32_t& last = last_[BucketOf(tokens[place - 2], tokens[place - 1])];
    before_[place] = last;
    last = static_cast<int32_t>(place);
    known_ = place;
  }
}

TokenIndex::Match TokenIndex::Find(absl::Span<const int32_t> text,
                                   absl::Span<const int32_t> history) const {
  Match best;
  const int64_t size = static_cast<int64_t>(history.size());
  if (size < 2) return best;
  int64_t place = last_[BucketOf(history[size - 2], history[size - 1])];
  for (int64_t i = 0; i < kMostLookedAt && place > 0; ++i) {
    const int64_t most = std::min({kMostCompared, place, size});
    int64_t same = 0;
    while (same < most && text[place - 1 - same] == history[size - 1 - same]) {
      ++same;
    }
    if (same >= 2 && same > best.tokens) best = {place, same};
    if (best.tokens == kMostCompared) break;
    place = before_[place];
  }
  return best;
}

}  // namespace weft
