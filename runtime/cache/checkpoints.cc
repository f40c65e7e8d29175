#include "runtime/cache/checkpoints.h"

#include <algorithm>

namespace weft {

Checkpoints::Checkpoints(KvCache* cache, int64_t most_tokens) : cache_(cache) {
  if (!cache->has_slots()) return;
  entries_.resize(cache->checkpoints());
  for (Entry& entry : entries_) entry.tokens.reserve(most_tokens);
}

int64_t Checkpoints::NextAfter(int64_t computed, int64_t last,
                               int64_t prompt) const {
  const int64_t regular = (computed / kInterval + 1) * kInterval;
  // The last token must run in any case: its logits are wanted.
  const int64_t end = prompt - 1;
  return end > computed && end - last >= kLeast ? std::min(end, regular)
                                                : regular;
}

int Checkpoints::FindExactly(uint64_t scope,
                             absl::Span<const int32_t> tokens) const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.used > 0 && entry.scope == scope && entry.tokens == tokens) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

void Checkpoints::Add(int32_t slot, uint64_t scope,
                      absl::Span<const int32_t> tokens) {
  if (entries_.empty() ||
      cache_->position(slot) != static_cast<int64_t>(tokens.size())) {
    return;
  }
  int place = FindExactly(scope, tokens);
  if (place < 0) {
    const auto oldest = std::min_element(
        entries_.begin(), entries_.end(),
        [](const Entry& a, const Entry& b) { return a.used < b.used; });
    place = static_cast<int>(oldest - entries_.begin());
    oldest->scope = scope;
    oldest->tokens.assign(tokens.begin(), tokens.end());
    cache_->Save(slot, place);
  }
  entries_[place].used = ++clock_;
}

int64_t Checkpoints::Find(uint64_t scope, absl::Span<const int32_t> tokens,
                          int64_t most) const {
  int64_t longest = 0;
  for (const Entry& entry : entries_) {
    const int64_t size = static_cast<int64_t>(entry.tokens.size());
    if (entry.used > 0 && entry.scope == scope && size > longest &&
        size <= most && tokens.first(size) == entry.tokens) {
      longest = size;
    }
  }
  return longest;
}

void Checkpoints::Restore(uint64_t scope, absl::Span<const int32_t> tokens,
                          int32_t slot) {
  const int place = FindExactly(scope, tokens);
  cache_->Restore(place, slot);
  entries_[place].used = ++clock_;
}

void Checkpoints::Forget(uint64_t scope) {
  for (Entry& entry : entries_) {
    if (entry.scope == scope) entry.used = 0;
  }
}

}  // namespace weft
