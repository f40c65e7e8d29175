// Runs a loop on several threads: workers that spin for a while and then sleep.
//
// Steps of a model are hundreds of loops of some microseconds, so workers wait
// for the next one awake; a millisecond's pause (nothing is generated) puts
// them to sleep. On a machine that others use too, a worker may lose its core
// in the middle of a loop, or may not get one at all:
//   - nobody waits for a worker that has not begun: what it would have done is
//     done by those that are there;
//   - the caller waits awake for a worker that has begun only as long as its
//     part can take, and then sleeps, so that the system moves the worker to
//     the core that has become free;
//   - when that happens, or when the caller itself lost its core, it works
//   alone
//     for a while, longer each time, before it tries the others again.
// So two threads on a busy machine are about as fast as one, not slower.
//
// A pool is used by one thread at a time, and not from inside its own loops.
// After fork() a child must not use what its parent used.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/machine/cpus.h"
#include "runtime/machine/float_mode.h"

namespace weft {

class ThreadPool {
 public:
  // Called with disjoint ranges [begin, end) that together are all items;
  // `thread` is in [0, threads()) and no two calls at the same time have the
  // same. Must not throw.
  using RangeFunction = void (*)(void* context, int64_t begin, int64_t end,
                                 int thread);

  // `affinity` is empty, or has a CPU for each thread. Errors: threads outside
  // 1..1024, too few CPUs, a CPU that the process may not use, no more threads
  // from the system.
  static absl::StatusOr<std::unique_ptr<ThreadPool>> Create(
      int threads, std::vector<int> affinity = {});
  ~ThreadPool();

  int threads() const { return threads_; }

  // Cuts items into contiguous ranges. Each thread has a share of them, the
  // same in every call of equal size, and begins there; who is done early takes
  // of the others'. Runs inline for one item or one thread. Takes no heap
  // memory. The float mode is kComputeFloatMode inside and as before
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

  // Around all work of a step: the calling thread computes in
  // kComputeFloatMode, and is pinned if the pool has an affinity. Afterwards
  // both are as before. Does not nest.
  class Scope {
   public:
    explicit Scope(ThreadPool* pool);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ThreadPool* pool_;
    ScopedComputeFloatMode float_mode_;
  };

 private:
  // What is left of one thread's share, on a cache line of its own.
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };

  ThreadPool(int threads, std::vector<int> affinity);

  void Work(int thread);
  // Runs ranges until none is left.
  void TakeRanges(int thread);
  // Until no worker is inside the loop that began at `start`.
  void WaitForWorkers(int64_t start);
  // From now on the caller works alone for a while.
  void WorkAlone();
  // Whether the system gave the caller's core to others for long.
  bool LostCore(int64_t now);

  const int threads_;
  const std::vector<int> affinity_;
  std::vector<int> saved_cpus_;  // the caller's, inside a Scope

  // The loop that runs; written only while no worker is inside.
  RangeFunction body_ = nullptr;
  void* context_ = nullptr;
  int64_t items_ = 0, range_ = 1;
  std::unique_ptr<Share[]> shares_;

  // Nanoseconds of the monotonic clock. Of the caller alone.
  int64_t alone_until_ = 0, alone_span_ = 0;
  int64_t last_end_ = 0;           // of a loop
  int64_t window_ = 0, used_ = 0;  // since when, and the caller's time then

  // Bits 0 to 10: workers inside the loop; bit 11: the loop is closed to those
  // that are not; above: its number. Threads sleep on this word.
  alignas(64) std::atomic<uint32_t> state_;
  alignas(64) std::atomic<int> asleep_{0};  // workers
  std::atomic<bool> caller_asleep_{false};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace weft
