#include "runtime/generation/scheduler_stats.h"

#include <cmath>
#include <limits>

namespace weft {

double LatencyHistogram::UpperBound(int index) {
  return index + 1 < kClasses ? std::ldexp(0.000125, index)
                              : std::numeric_limits<double>::infinity();
}

void LatencyHistogram::Add(double seconds) {
  int index = 0;
  while (seconds > UpperBound(index)) ++index;
  ++classes_[index];
  ++count_;
  sum_ += seconds;
}

double LatencyHistogram::Quantile(double share) const {
  if (count_ == 0) return 0;
  int64_t below = 0;
  for (int index = 0; index < kClasses; ++index) {
    below += classes_[index];
    if (static_cast<double>(below) >= share * static_cast<double>(count_)) {
      return UpperBound(index);
    }
  }
  return UpperBound(kClasses - 1);
}

}  // namespace weft
