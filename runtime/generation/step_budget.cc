#include "runtime/generation/step_budget.h"

#include <algorithm>

namespace weft {

void ShareBudget(absl::Span<const int64_t> left, int64_t budget,
                 absl::Span<int64_t> share) {
  std::fill(share.begin(), share.end(), 0);
  for (size_t oldest = 0; oldest < left.size(); ++oldest) {
    if (left[oldest] == 0) continue;
    share[oldest] = std::min(left[oldest], budget - budget / 2);
    budget -= share[oldest];
    break;
  }
  while (budget > 0) {
    size_t least = left.size();
    for (size_t i = 0; i < left.size(); ++i) {
      const int64_t rest = left[i] - share[i];
      if (rest > 0 &&
          (least == left.size() || rest < left[least] - share[least])) {
        least = i;
      }
    }
    if (least == left.size()) break;
    const int64_t more = std::min(left[least] - share[least], budget);
    share[least] += more;
    budget -= more;
  }
}

}  // namespace weft
