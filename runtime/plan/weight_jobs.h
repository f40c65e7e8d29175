// The weights of a plan as a list of work: each once, however many buckets read
// it.
#pragma once

#include <functional>
#include <vector>

#include "runtime/machine/thread_pool.h"
#include "runtime/plan/plan.h"

namespace weft {

// Told how far packing is; for progress bars.
using Progress = std::function<void(double fraction)>;

struct WeightJob {
  const Value* value;  // in one of the plan's graphs
  int64_t offset;      // a multiple of 64
  int64_t bytes;
};

// In order of first appearance, one behind the other. `described_only`: only
// weights that are still to be made.
std::vector<WeightJob> WeightJobs(const Plan& plan, bool described_only);

// The bytes from the first job's start to the last one's end.
int64_t TotalBytes(const std::vector<WeightJob>& jobs);

// Calls run(i, thread) for every job, on all threads, the largest first, and
// tells the progress from this one.
void RunWeightJobs(const std::vector<WeightJob>& jobs, ThreadPool& threads,
                   const Progress& progress,
                   const std::function<void(size_t, int)>& run);

}  // namespace weft
