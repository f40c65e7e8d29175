#include "runtime/generation/scheduler_stats.h"

#include <algorithm>
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

void LatencyHistogram::Add(const LatencyHistogram& other) {
  for (int i = 0; i < kClasses; ++i) classes_[i] += other.classes_[i];
  count_ += other.count_;
  sum_ += other.sum_;
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

namespace {

using Stats = SchedulerStats;

constexpr int64_t Stats::*kNow[] = {&Stats::waiting,    &Stats::running,
                                    &Stats::slots,      &Stats::pages,
                                    &Stats::pages_used, &Stats::pages_cached,
                                    &Stats::pages_free, &Stats::page_bytes};
constexpr int64_t Stats::*kCounts[] = {&Stats::requests,
                                       &Stats::refused,
                                       &Stats::finished,
                                       &Stats::cancelled,
                                       &Stats::failed,
                                       &Stats::steps,
                                       &Stats::prompt_tokens,
                                       &Stats::prefill_tokens,
                                       &Stats::recomputed_tokens,
                                       &Stats::generated_tokens,
                                       &Stats::embedded_texts,
                                       &Stats::scored_texts,
                                       &Stats::prefix_hit_tokens,
                                       &Stats::drafted_tokens,
                                       &Stats::accepted_tokens,
                                       &Stats::preemptions,
                                       &Stats::context_shifts,
                                       &Stats::pages_loaded,
                                       &Stats::pages_stored,
                                       &Stats::pages_damaged};
constexpr LatencyHistogram Stats::*kTimes[] = {
    &Stats::queue_time, &Stats::first_token, &Stats::inter_token,
    &Stats::step_time};

}  // namespace

void SchedulerStats::Add(const SchedulerStats& other) {
  for (const auto field : kNow) this->*field += other.*field;
  // Of one folder, whichever model's pages are in it.
  stored_bytes = std::max(stored_bytes, other.stored_bytes);
  for (const auto field : kCounts) this->*field += other.*field;
  for (const auto field : kTimes) (this->*field).Add(other.*field);
  busy_seconds += other.busy_seconds;
}

void SchedulerStats::ForgetNow() {
  for (const auto field : kNow) this->*field = 0;
  stored_bytes = 0;
}

}  // namespace weft
