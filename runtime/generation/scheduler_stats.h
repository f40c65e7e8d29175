// What a Scheduler counts. All numbers but those marked "now" are since it was
// made and only grow.
#pragma once

#include <array>
#include <cstdint>

namespace weft {

// Times in classes whose upper bounds double from 1/8 ms.
class LatencyHistogram {
 public:
  static constexpr int kClasses = 24;  // the last has no upper bound

  // Of class `index`, in seconds; infinity for the last.
  static double UpperBound(int index);

  void Add(double seconds);
  void Add(const LatencyHistogram& other);

  int64_t count() const { return count_; }
  double sum() const { return sum_; }  // seconds
  // In class `index` alone.
  int64_t in_class(int index) const { return classes_[index]; }
  // The upper bound of the class where this share (0 to 1) of all is reached; 0
  // when there are none.
  double Quantile(double share) const;

 private:
  std::array<int64_t, kClasses> classes_{};
  int64_t count_ = 0;
  double sum_ = 0;
};

struct SchedulerStats {
  // Now. Sequences: choices of requests.
  int64_t waiting = 0;       // sequences in the queue, preempted ones included
  int64_t running = 0;       // sequences with a slot
  int64_t slots = 0;         // the most that may run
  int64_t pages = 0;         // of 64 positions, in total
  int64_t pages_used = 0;    // held by running sequences
  int64_t pages_cached = 0;  // held by none, kept for later requests
  int64_t pages_free = 0;    // the rest
  int64_t page_bytes = 0;    // of one page, all layers together; of several
                             // schedulers: of a page of each

  // Of the folder of files with pages (page_folder.h), which schedulers of one
  // process may share: Add counts it once.
  int64_t stored_bytes = 0;

  int64_t requests = 0;   // accepted
  int64_t refused = 0;    // by a full queue
  int64_t finished = 0;   // requests, for whatever reason
  int64_t cancelled = 0;  // requests, deadlines included
  int64_t failed = 0;     // requests with an error
  int64_t steps = 0;
  int64_t prompt_tokens = 0;      // of accepted requests
  int64_t prefill_tokens = 0;     // run, without those that follow
  int64_t recomputed_tokens = 0;  // run again after a preemption
  int64_t generated_tokens = 0;
  int64_t embedded_texts = 0;     // that got a vector
  int64_t scored_texts = 0;       // that got scores
  int64_t prefix_hit_tokens = 0;  // not run, since cached
  int64_t drafted_tokens = 0;     // guessed and tried
  int64_t accepted_tokens = 0;    // of them, those that came true
  int64_t pages_loaded = 0;       // from files, or states
  int64_t pages_stored = 0;       // in files, likewise
  int64_t pages_damaged = 0;      // files that were not what they should be
  int64_t preemptions = 0;
  int64_t context_shifts = 0;
  double busy_seconds = 0;  // inside steps

  LatencyHistogram queue_time;   // Submit to the first step
  LatencyHistogram first_token;  // Submit to the first token
  LatencyHistogram inter_token;  // one token to the next, of one choice
  LatencyHistogram step_time;

  // Of another scheduler's, too.
  void Add(const SchedulerStats& other);
  // There is nothing now: the scheduler has ended.
  void ForgetNow();
};

}  // namespace weft
