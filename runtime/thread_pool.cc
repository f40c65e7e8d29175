#include "runtime/thread_pool.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/float_mode.h"

namespace weft {
namespace {

constexpr int kMaxThreads = 1024;

// Ranges per thread. More would share the work out more evenly, but a range is
// also the stretch of weights that one core streams through.
constexpr int kRangesPerThread = 4;

absl::Status PoolError(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot make threads: ", where, ": ", what));
}

// The current thread's CPUs. Best effort: a CPU may have gone offline since it
// was checked, and then the scheduler's choice is right.
void SetCpus(const std::vector<int>& cpus) {
  const int count = *std::max_element(cpus.begin(), cpus.end()) + 1;
  cpu_set_t* mask = CPU_ALLOC(count);
  if (mask == nullptr) return;
  const size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, mask);
  for (const int cpu : cpus) CPU_SET_S(cpu, bytes, mask);
  sched_setaffinity(0, bytes, mask);
  CPU_FREE(mask);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ThreadPool>> ThreadPool::Create(
    int threads, std::vector<int> affinity) {
  if (threads < 1 || threads > kMaxThreads) {
    return PoolError("number of threads",
                     absl::StrCat(threads, ", must be 1 to ", kMaxThreads));
  }
  if (!affinity.empty()) {
    if (affinity.size() < static_cast<size_t>(threads)) {
      return PoolError("affinity",
                       absl::StrCat(affinity.size(), " CPUs for ", threads,
                                    " threads, name one for each"));
    }
    const std::vector<int> allowed = AllowedCpus();
    for (const int cpu : affinity) {
      if (!std::count(allowed.begin(), allowed.end(), cpu)) {
        return PoolError(
            "affinity",
            absl::StrCat("CPU ", cpu, " is not one this process may use"));
      }
    }
  }
  return std::unique_ptr<ThreadPool>(
      new ThreadPool(threads, std::move(affinity)));
}

ThreadPool::ThreadPool(int threads, std::vector<int> affinity)
    : threads_(threads),
      affinity_(std::move(affinity)),
      saved_float_modes_(threads) {}

void ThreadPool::ParallelFor(int64_t items, RangeFunction body, void* context) {
  if (items <= 0) return;
  if (items == 1 || threads_ == 1) {
    ScopedComputeFloatMode float_mode;
    body(context, 0, items, 0);
    return;
  }
  const int64_t ranges = int64_t{threads_} * kRangesPerThread;
  const int64_t range = items / ranges + (items % ranges != 0);
  alignas(64) std::atomic<int64_t> taken{0};
#pragma omp parallel num_threads(threads_)
  {
    ScopedComputeFloatMode float_mode;
    // Fewer than asked for inside another region or under OMP_THREAD_LIMIT.
    const int team = omp_get_num_threads();
    const int thread = omp_get_thread_num();
    const int64_t count = items / range + (items % range != 0);
    for (int64_t i = thread; i < count;
         i = team + taken.fetch_add(1, std::memory_order_relaxed)) {
      const int64_t begin = i * range;
      body(context, begin, std::min(items - begin, range) + begin, thread);
    }
  }
}

ThreadPool::Scope::Scope(ThreadPool* pool)
    : pool_(pool), saved_threads_(omp_get_max_threads()) {
  if (!pool_->affinity_.empty()) pool_->saved_cpus_ = AllowedCpus();
  omp_set_num_threads(pool_->threads_);
#pragma omp parallel num_threads(pool_->threads_)
  {
    const int thread = omp_get_thread_num();
    pool_->saved_float_modes_[thread] = FloatMode();
    SetFloatMode(kComputeFloatMode);
    if (!pool_->affinity_.empty()) {
      // A worker is pinned once; the caller gets its CPUs back after each
      // scope.
      thread_local int pinned_to = -1;
      const int cpu = pool_->affinity_[thread];
      if (thread == 0 || pinned_to != cpu) {
        SetCpus({cpu});
        pinned_to = thread == 0 ? -1 : cpu;
      }
    }
  }
}

ThreadPool::Scope::~Scope() {
#pragma omp parallel num_threads(pool_->threads_)
  SetFloatMode(pool_->saved_float_modes_[omp_get_thread_num()]);
  omp_set_num_threads(saved_threads_);
  if (!pool_->affinity_.empty()) SetCpus(pool_->saved_cpus_);
}

}  // namespace weft
