// A condition variable for absl::Mutex whose waits end by the monotonic clock:
// absl's own look at the wall clock, and wait for an hour longer when that is
// set back by one.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace weft {

using SteadyTime = std::chrono::steady_clock::time_point;

// The moment so far from now; negative: gone by. More than a century is one.
inline SteadyTime SteadyTimeIn(absl::Duration time) {
  const absl::Duration most = absl::Hours(24 * 365 * 100);
  return std::chrono::steady_clock::now() +
         absl::ToChronoNanoseconds(std::clamp(time, -most, most));
}

class SteadyCondVar {
 public:
  // The mutex is held before and after. May return for no reason.
  void Wait(absl::Mutex* mutex) {
    Lock lock{mutex};
    condition_.wait(lock);
  }
  // True when the time has come.
  bool WaitUntil(absl::Mutex* mutex, SteadyTime until) {
    Lock lock{mutex};
    return condition_.wait_until(lock, until) == std::cv_status::timeout;
  }
  void SignalAll() { condition_.notify_all(); }

 private:
  struct Lock {
    absl::Mutex* mutex;
    void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex->Lock(); }
    void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex->Unlock(); }
  };
  std::condition_variable_any condition_;
};

}  // namespace weft
