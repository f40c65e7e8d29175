// Runs a loop on several threads: a thin layer over OpenMP.
//
// OpenMP, because oneDNN brings it anyway, and two pools that spin against each
// other cost more than any own pool could gain. libgomp's workers spin for some
// milliseconds after a region (GOMP_SPINCOUNT, 300000 rounds unless set) and
// then sleep: awake while tokens are generated, idle when nothing is. That
// default is what weft wants, so it sets nothing; OMP_WAIT_POLICY=passive costs
// about 40 us per region, =active burns the cores for ever.
//
// Every region has the full number of threads: libgomp ends the threads that a
// smaller team leaves over, and starting them again is slow.
//
// A pool is used by one thread at a time, best always the same: libgomp keeps
// workers per calling thread. After fork() a child must not use what its parent
// used.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cpus.h"

namespace weft {

class ThreadPool {
 public:
  // Called with disjoint ranges [begin, end) that together are all items;
  // `thread` is in [0, threads()) and no two calls at the same time have the
  // same. Must not throw.
  using RangeFunction = void (*)(void* context, int64_t begin, int64_t end,
                                 int thread);

  // `affinity` is empty, or has a CPU for each thread. Errors: threads outside
  // 1..1024, too few CPUs, a CPU that the process may not use.
  static absl::StatusOr<std::unique_ptr<ThreadPool>> Create(
      int threads, std::vector<int> affinity = {});

  int threads() const { return threads_; }

  // Cuts items into contiguous ranges of about a quarter of a thread's share.
  // Each thread begins at its own place, the same in every call of equal size;
  // who is done early takes more. Runs inline for one item or one thread. Takes
  // no heap memory. The float mode is kComputeFloatMode inside and as before
  // afterwards.
  void ParallelFor(int64_t items, RangeFunction body, void* context);

  // The same for a callable (begin, end, thread).
  template <typename Body>
  void ParallelFor(int64_t items, Body&& body) {
    using Function = std::remove_reference_t<Body>;
    ParallelFor(
        items,
        [](void* context, int64_t begin, int64_t end, int thread) {
          (*static_cast<Function*>(context))(begin, end, thread);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Around all work of a step, for what ParallelFor does not reach: the regions
  // of oneDNN. They get this pool's number of threads and float mode, and all
  // threads are pinned if the pool has an affinity. Afterwards the caller's
  // OpenMP settings, its CPUs and every thread's float mode are as before;
  // workers stay pinned. Costs two empty regions. Does not nest.
  class Scope {
   public:
    explicit Scope(ThreadPool* pool);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ThreadPool* pool_;
    int saved_threads_;
  };

 private:
  ThreadPool(int threads, std::vector<int> affinity);

  const int threads_;
  const std::vector<int> affinity_;
  std::vector<uint64_t> saved_float_modes_;  // by thread, inside a Scope
  std::vector<int> saved_cpus_;              // the caller's, inside a Scope
};

}  // namespace weft
