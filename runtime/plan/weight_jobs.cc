#include "runtime/plan/weight_jobs.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <set>
#include <string>

namespace weft {

std::vector<WeightJob> WeightJobs(const Plan& plan, bool described_only) {
  std::vector<WeightJob> jobs;
  std::set<std::string> seen;
  int64_t offset = 0;
  for (const Graph* graph : plan.AllGraphs()) {
    for (ValueId id = 0; id < graph->value_count(); ++id) {
      const Value& value = graph->value(id);
      if (value.kind != ValueKind::kWeight) continue;
      const bool described = value.data.make != nullptr;
      if (described_only && !described) continue;
      if (!seen.insert(value.name).second) continue;
      const int64_t bytes = described
                                ? value.data.made_bytes
                                : static_cast<int64_t>(value.data.bytes.size());
      jobs.push_back({&value, offset, bytes});
      offset += AlignedBytes(bytes);
    }
  }
  return jobs;
}

int64_t TotalBytes(const std::vector<WeightJob>& jobs) {
  return jobs.empty() ? 0
                      : jobs.back().offset + AlignedBytes(jobs.back().bytes);
}

void RunWeightJobs(const std::vector<WeightJob>& jobs, ThreadPool& threads,
                   const Progress& progress,
                   const std::function<void(size_t, int)>& run) {
  std::vector<size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return jobs[a].bytes > jobs[b].bytes;
  });
  const double total =
      static_cast<double>(std::max<int64_t>(TotalBytes(jobs), 1));
  std::atomic<size_t> next{0};
  std::atomic<int64_t> done{0};
  // One item for each thread, which takes jobs as long as there are any.
  threads.ParallelFor(threads.threads(), [&](int64_t, int64_t, int thread) {
    for (size_t turn; (turn = next++) < order.size();) {
      const size_t i = order[turn];
      run(i, thread);
      done += AlignedBytes(jobs[i].bytes);
      // Thread 0 is the one that called.
      if (thread == 0 && progress) {
        progress(static_cast<double>(done) / total);
      }
    }
  });
  if (progress) progress(1.0);
}

}  // namespace weft
