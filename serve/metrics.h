// What /metrics tells, in Prometheus' text format (version 0.0.4).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "runtime/generation/scheduler_stats.h"

namespace weft {

// Counts answers. Thread-safe.
class HttpCounters {
 public:
  void Count(absl::string_view route, int status);
  // By route and status, which begin with the same text in every scrape.
  std::string Text() const;

 private:
  mutable absl::Mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> answers_
      ABSL_GUARDED_BY(mutex_);
};

// The scheduler's numbers.
std::string SchedulerMetrics(const SchedulerStats& stats);

// One number without labels; `type` is counter or gauge.
std::string Metric(absl::string_view name, absl::string_view help,
                   absl::string_view type, double value);

// Memory of this process that is in use, in bytes; 0 where the system does not
// tell.
int64_t ResidentBytes();

}  // namespace weft
