// Parts of one thing, each on a thread of its own that lasts as long: for what
// has no pool of threads.
#pragma once

#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace weft {

// Calls work(0) here and work(1) to work(threads - 1) on other threads, and
// waits for all. The error of the lowest number, if there is any. Requires
// threads >= 1.
inline absl::Status OnThreads(
    int threads, absl::FunctionRef<absl::Status(int thread)> work) {
  std::vector<absl::Status> results(static_cast<size_t>(threads));
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) {
    others.emplace_back([&results, work, thread] {
      results[static_cast<size_t>(thread)] = work(thread);
    });
  }
  results[0] = work(0);
  for (std::thread& other : others) other.join();
  for (const absl::Status& result : results) {
    if (!result.ok()) return result;
  }
  return absl::OkStatus();
}

}  // namespace weft
