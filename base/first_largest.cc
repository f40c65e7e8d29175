#include "base/first_largest.h"

#include <string.h>

#include <algorithm>
#include <limits>

namespace weft {
namespace {

// A register of the baseline instruction sets, and four at a time to hide the
// latency of a maximum.
typedef float Lanes __attribute__((vector_size(16)));
constexpr int64_t kLanes = 4, kChains = 4, kBlock = 512;
constexpr float kLeast = -std::numeric_limits<float>::infinity();

float LargestOfBlock(const float* p) {
  Lanes largest[kChains];
  for (Lanes& lanes : largest) lanes = Lanes{} + kLeast;
  for (int64_t i = 0; i < kBlock; i += kChains * kLanes) {
    for (int64_t c = 0; c < kChains; ++c) {
      Lanes values;
      memcpy(&values, p + i + c * kLanes, sizeof(values));
      largest[c] = values > largest[c] ? values : largest[c];
    }
  }
  float best = kLeast;
  for (const Lanes& lanes : largest) {
    for (int64_t j = 0; j < kLanes; ++j) best = std::max(best, lanes[j]);
  }
  return best;
}

}  // namespace

int64_t FirstLargest(absl::Span<const float> values) {
  const int64_t size = static_cast<int64_t>(values.size());
  float best = kLeast;
  int64_t at = 0;  // of the best, or where the block that has it begins
  int64_t i = 0;
  for (; i + kBlock <= size; i += kBlock) {
    const float largest = LargestOfBlock(values.data() + i);
    if (largest > best) {
      best = largest;
      at = i;
    }
  }
  for (; i < size; ++i) {
    if (values[i] > best) {
      best = values[i];
      at = i;
    }
  }
  while (at < size && values[at] != best && best > kLeast) ++at;
  return at;
}

}  // namespace weft
