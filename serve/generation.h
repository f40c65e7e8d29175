// What an HTTP request generates: one scheduler request per prompt, with their
// events brought together for the connection's thread. They are one task of
// their client, who is known by its key, or else by its address.
//
// Idea: the scheduler's thread puts events into a list that is bounded, and
// never waits: a client that reads so slowly that the list is full loses its
// request, and nobody else's time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "runtime/api/scheduler.h"
#include "serve/http_server.h"

namespace weft {

// An event of the `prompt`-th request.
struct PromptEvent {
  int64_t prompt = 0;
  Event event;
};

// A client's number: of its key, or else of its address.
uint64_t ClientOf(const HttpCall& call);

// Why a text ended without being finished.
absl::Status EventError(const Event& event);

// What is answered to errors of Next and EventError.
ApiError GenerationError(const absl::Status& status);

// One thread uses it. Cancels what has not ended when it goes.
class Generation {
 public:
  // `scheduler` and the call's connection must outlive it; at most `buffered`
  // events wait.
  Generation(Scheduler* scheduler, const HttpCall& call, size_t buffered);
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // Errors of Submit; then nothing goes on.
  absl::Status Start(std::vector<Request> requests);

  // The next events, at least one unless done() or it is `until`. kCancelled
  // when the client has gone, or more events came than the list holds.
  using Time = std::chrono::steady_clock::time_point;
  absl::StatusOr<std::vector<PromptEvent>> Next(Time until = Time::max());

  // Whether the last event of every request has been taken.
  bool done() const { return open_ == 0; }
  // Of all requests together, as far as events were taken.
  Usage usage() const;

 private:
  absl::StatusOr<std::vector<PromptEvent>> Take();

  struct Mailbox {
    explicit Mailbox(size_t most) : most(most) {}
    void Put(int64_t prompt, const Event& event);

    const size_t most;
    // Of the standard library: absl's wait by the wall clock.
    std::mutex mutex;
    std::condition_variable came;
    // Both under the mutex.
    std::vector<PromptEvent> events;
    bool overflown = false;
  };

  Scheduler* scheduler_;
  Connection* connection_;
  const uint64_t client_, task_;
  // Shared with callbacks, which may outlive this.
  std::shared_ptr<Mailbox> mailbox_;
  std::vector<RequestId> ids_;
  std::vector<Usage> usages_;
  int64_t open_ = 0;
};

}  // namespace weft
