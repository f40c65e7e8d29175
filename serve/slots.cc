#include "serve/slots.h"

#include <algorithm>
#include <utility>

namespace weft {

std::vector<Slots::Seen> Slots::List() const {
  const absl::MutexLock lock(&mutex_);
  std::vector<Seen> list;
  for (const Slot& slot : slots_) {
    list.push_back(
        {static_cast<int64_t>(slot.tokens.size()), slot.running > 0});
  }
  return list;
}

int64_t Slots::Begin(int64_t wanted, absl::Span<const int32_t> prompt) {
  const absl::MutexLock lock(&mutex_);
  int64_t best = wanted;
  int64_t best_common = -1;
  for (size_t i = 0; i < slots_.size() && wanted < 0; ++i) {
    const std::vector<int32_t>& tokens = slots_[i].tokens;
    const size_t most = std::min(tokens.size(), prompt.size());
    int64_t common =
        std::mismatch(tokens.begin(), tokens.begin() + most, prompt.begin())
            .first -
        tokens.begin();
    // A text that shares little is better kept whole.
    if (2 * common < static_cast<int64_t>(tokens.size())) common = 0;
    const bool better =
        best < 0 || common > best_common ||
        (common == best_common &&
         std::make_pair(slots_[i].running, slots_[i].used) <
             std::make_pair(slots_[best].running, slots_[best].used));
    if (!better) continue;
    best = static_cast<int64_t>(i);
    best_common = common;
  }
  slots_[best].used = ++clock_;
  ++slots_[best].running;
  return best;
}

void Slots::End(int64_t slot, std::vector<int32_t> tokens) {
  const absl::MutexLock lock(&mutex_);
  --slots_[slot].running;
  slots_[slot].tokens = std::move(tokens);
}

std::vector<int32_t> Slots::Tokens(int64_t slot) const {
  const absl::MutexLock lock(&mutex_);
  return slots_[slot].tokens;
}

void Slots::Set(int64_t slot, std::vector<int32_t> tokens) {
  const absl::MutexLock lock(&mutex_);
  slots_[slot].tokens = std::move(tokens);
  slots_[slot].used = ++clock_;
}

}  // namespace weft
