// The answer that is being generated, as an input loop takes it.
//
// Idea: the scheduler's thread puts events into a list and makes a file
// descriptor readable; a loop that waits in poll for keys and for this one
// never waits for the model.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/api/scheduler.h"

namespace weft::chat {

struct TimedEvent {
  Event event;
  absl::Time at;  // when the scheduler told it
};

// For one thread. Cancels what has not ended when it goes.
class AnswerStream {
 public:
  // `scheduler` must outlive it. Errors: no file descriptors left.
  static absl::StatusOr<std::unique_ptr<AnswerStream>> Create(
      Scheduler* scheduler);
  ~AnswerStream();
  AnswerStream(const AnswerStream&) = delete;
  AnswerStream& operator=(const AnswerStream&) = delete;

  // Readable while there may be events.
  int fd() const;

  // Only when not running(). Errors of Scheduler::Submit.
  absl::Status Start(Request request);
  // Its last event comes soon.
  void Stop();
  // Started, and its last event has not been taken.
  bool running() const { return id_.has_value(); }

  // What has come; never waits.
  std::vector<TimedEvent> Take();

 private:
  struct Mailbox;

  AnswerStream(Scheduler* scheduler, std::shared_ptr<Mailbox> mailbox);

  Scheduler* scheduler_;
  std::shared_ptr<Mailbox> mailbox_;  // with callbacks, which may outlive this
  std::optional<RequestId> id_;
};

}  // namespace weft::chat
