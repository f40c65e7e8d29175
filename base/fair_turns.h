// Work of which few may run at once, by threads of many clients.
//
// Idea: whoever's client began longest ago goes first, then whoever asked
// first. So a client that brings many waits for itself, and others wait for one
// or two of its. (Within the model, FairShare does this in tokens.)
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace weft {

class FairTurns {
 public:
  explicit FairTurns(int at_once) : free_(at_once) {}

  // Waits until the caller may run; it may while this lives.
  class Turn {
   public:
    Turn(FairTurns* turns, uint64_t client);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    FairTurns* const turns_;
  };

  // Callers that wait.
  int64_t waiting() const;

 private:
  struct Waiter {
    uint64_t client;
    bool may_run;
  };

  // Lets those run for whom there is room.
  void Admit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  int free_ ABSL_GUARDED_BY(mutex_);
  std::list<Waiter> waiting_ ABSL_GUARDED_BY(mutex_);  // by when they asked
  // When each client began last, counted; of clients that do not wait, too,
  // until nobody does.
  std::map<uint64_t, int64_t> began_ ABSL_GUARDED_BY(mutex_);
  int64_t turns_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
