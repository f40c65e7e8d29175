// How much of each adapter (LoRA) a request has that does not say: what the
// model was loaded with, until a client says otherwise (POST /lora-adapters).
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace weft {

class DefaultAdapters {
 public:
  // By the adapters' numbers; none for models without.
  explicit DefaultAdapters(std::vector<float> scales)
      : count_(static_cast<int64_t>(scales.size())),
        scales_(std::move(scales)) {}

  int64_t count() const { return count_; }
  std::vector<float> Get() const {
    const absl::MutexLock lock(&mutex_);
    return scales_;
  }
  // Requires as many.
  void Set(std::vector<float> scales) {
    const absl::MutexLock lock(&mutex_);
    scales_ = std::move(scales);
  }

  // Scales of all adapters, 0 for those that the list does not have. Errors:
  // there is no adapter of that number; `param` names the field.
  absl::StatusOr<std::vector<float>> ScalesOf(
      const std::vector<std::pair<int64_t, float>>& list,
      const char* param) const;

 private:
  const int64_t count_;
  mutable absl::Mutex mutex_;
  std::vector<float> scales_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
