#include "runtime/execution/expert_slots.h"

namespace weft {

ExpertSlots::ExpertSlots(int experts, int slots)
    : slot_of_(experts, -1),
      expert_in_(slots, -1),
      counts_(experts, 0),
      last_(experts, 0) {}

void ExpertSlots::Count(absl::Span<const int32_t> chosen, int64_t tokens) {
  ++steps_;
  for (tokens_ += tokens; tokens_ >= kHalfLife; tokens_ -= kHalfLife) {
    for (float& count : counts_) count /= 2;
  }
  for (const int32_t expert : chosen) {
    ++counts_[expert];
    last_[expert] = steps_;
  }
}

bool ExpertSlots::Less(int a, int b) const {
  if (counts_[a] != counts_[b]) return counts_[a] < counts_[b];
  return last_[a] < last_[b];
}

int ExpertSlots::Take(int expert, absl::FunctionRef<bool(int slot)> may) {
  int best = -1;
  for (int slot = 0; slot < slots(); ++slot) {
    if (!may(slot)) continue;
    if (expert_in_[slot] < 0) {
      best = slot;
      break;
    }
    if (best < 0 || Less(expert_in_[slot], expert_in_[best])) best = slot;
  }
  if (best < 0) return -1;
  if (expert_in_[best] >= 0) slot_of_[expert_in_[best]] = -1;
  expert_in_[best] = expert;
  slot_of_[expert] = best;
  return best;
}

}  // namespace weft
