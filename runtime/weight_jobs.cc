#include "runtime/weight_jobs.h"

#include <algorithm>
#include <set>
#include <string>

namespace weft {

std::vector<WeightJob> WeightJobs(const Plan& plan, bool described_only) {
  std::vector<WeightJob> jobs;
  std::set<std::string> seen;
  int64_t offset = 0;
  for (const Graph& graph : plan.buckets) {
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      const Value& value = graph.value(id);
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
                   const std::function<void(size_t)>& run) {
  const int64_t total = std::max<int64_t>(TotalBytes(jobs), 1);
  // In groups, so that progress is told from this thread.
  const size_t group = 4 * static_cast<size_t>(threads.threads());
  for (size_t begin = 0; begin < jobs.size(); begin += group) {
    const size_t n = std::min(group, jobs.size() - begin);
    threads.ParallelFor(static_cast<int64_t>(n),
                        [&](int64_t from, int64_t to, int) {
                          for (int64_t i = from; i < to; ++i) run(begin + i);
                        });
    if (!progress) continue;
    const size_t done = begin + n;
    const int64_t bytes = done < jobs.size() ? jobs[done].offset : total;
    progress(static_cast<double>(bytes) / static_cast<double>(total));
  }
}

}  // namespace weft
