#include "serve/generation.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "base/status.h"
#include "serve/http_checks.h"

namespace weft {

namespace {

// How often a connection is asked whether its client is still there.
constexpr std::chrono::milliseconds kLook(50);
// Nginx's number for a client that went before its answer.
constexpr int kClientGone = 499;

// A number of its own for each.
uint64_t NextTask() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

absl::Status EventError(const Event& event) {
  if (!event.finished) return absl::OkStatus();
  if (event.reason == FinishReason::kError) return event.status;
  if (event.reason == FinishReason::kCancelled) {
    return absl::UnavailableError("the server is shutting down");
  }
  return absl::OkStatus();
}

ApiError GenerationError(const absl::Status& status) {
  ApiError error = ToApiError(status);
  if (absl::IsCancelled(status)) error.status = kClientGone;
  return error;
}

Generation::Generation(Scheduler* scheduler, const HttpCall& call,
                       size_t buffered)
    : scheduler_(scheduler),
      connection_(&call.connection),
      client_(ClientOf(call)),
      task_(NextTask()),
      mailbox_(std::make_shared<Mailbox>(buffered)) {}

Generation::~Generation() {
  if (done()) return;
  for (const RequestId id : ids_) scheduler_->Cancel(id);
}

void Generation::Mailbox::Put(int64_t prompt, const Event& event) {
  const std::lock_guard<std::mutex> lock(mutex);
  // Nobody will read on; the reader cancels.
  overflown |= events.size() >= most;
  if (!overflown) events.push_back({prompt, event});
  came.notify_one();
}

absl::Status Generation::Start(std::vector<Request> requests) {
  usages_.resize(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].client = client_;
    requests[i].task = task_;
    WEFT_ASSIGN_OR_RETURN(
        RequestId id,
        scheduler_->Submit(std::move(requests[i]),
                           [mailbox = mailbox_, i](const Event& event) {
                             mailbox->Put(static_cast<int64_t>(i), event);
                           }));
    ids_.push_back(id);
    ++open_;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PromptEvent>> Generation::Next(Time until) {
  while (true) {
    WEFT_ASSIGN_OR_RETURN(std::vector<PromptEvent> events, Take());
    if (connection_->PeerGone()) return absl::CancelledError("client gone");
    if (!events.empty() || done()) return events;
    if (std::chrono::steady_clock::now() >= until) return events;
  }
}

absl::StatusOr<std::vector<PromptEvent>> Generation::Take() {
  std::vector<PromptEvent> events;
  {
    std::unique_lock<std::mutex> lock(mailbox_->mutex);
    mailbox_->came.wait_until(
        lock, std::chrono::steady_clock::now() + kLook,
        [&] { return !mailbox_->events.empty() || mailbox_->overflown; });
    if (mailbox_->overflown) {
      return absl::CancelledError("the client reads too slowly");
    }
    events.swap(mailbox_->events);
  }
  for (const PromptEvent& taken : events) {
    usages_[taken.prompt] = taken.event.usage;
    if (taken.event.last) --open_;
  }
  return events;
}

Usage Generation::usage() const {
  Usage all;
  for (const Usage& usage : usages_) {
    all.prompt_tokens += usage.prompt_tokens;
    all.cached_tokens += usage.cached_tokens;
    all.completion_tokens += usage.completion_tokens;
    all.drafted_tokens += usage.drafted_tokens;
    all.accepted_tokens += usage.accepted_tokens;
  }
  return all;
}

}  // namespace weft
