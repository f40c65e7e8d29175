// Two ways to take a Scheduler's events on the caller's own thread: as a queue,
// and all at once.
//
//   auto result = weft::Complete(*scheduler, std::move(request));  // waits
//   auto result = weft::Complete(*scheduler, std::move(request),
//                                [](const weft::Event& event) {
//                                  std::cout << event.text << std::flush;
//                                });
//
//   auto queue = std::make_shared<weft::EventQueue>();
//   auto id = scheduler->Submit(std::move(request), queue->Callback());
//   weft::Event event;
//   while (queue->Next(absl::InfiniteDuration(), &event)) { ... }
#pragma once

#include <deque>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_cond_var.h"
#include "runtime/api/scheduler.h"

namespace weft {

// Events of one request, or of several, until each is taken. Grows as far as
// texts do: a reader that is slow delays nobody. Thread-safe.
class EventQueue : public std::enable_shared_from_this<EventQueue> {
 public:
  // For one request each, also one that is then refused. Keeps the queue alive,
  // which a shared_ptr must hold.
  EventCallback Callback();

  // The next event, waiting so long at most. False when none came, or when
  // nothing follows (then done()): the last event of every request has been
  // taken, and callbacks that were not called are gone.
  bool Next(absl::Duration longest, Event* event);

  // Whether nothing follows.
  bool done() const;

 private:
  struct Ticket;

  mutable absl::Mutex mutex_;
  SteadyCondVar changed_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  int64_t open_requests_ ABSL_GUARDED_BY(mutex_) = 0;
};

struct ChoiceResult {
  std::string text;
  std::vector<GeneratedToken> tokens;
  FinishReason reason = FinishReason::kLength;
  int stop_string = -1;
  std::vector<float> embedding;  // of Request::embed
};

struct Completion {
  std::vector<ChoiceResult> choices;
  Usage usage;
};

// Submits and gives the whole result later. Errors of Submit at once; the
// future's are those of the sequences (kError). `callback`, if there is one, is
// called with each event as well, as the scheduler does it.
absl::StatusOr<std::future<absl::StatusOr<Completion>>> SubmitForResult(
    Scheduler& scheduler, Request request, EventCallback callback = nullptr,
    RequestId* id = nullptr);

// The same, and waits. Not from a callback.
absl::StatusOr<Completion> Complete(Scheduler& scheduler, Request request,
                                    EventCallback callback = nullptr);

}  // namespace weft
