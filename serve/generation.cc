#include "serve/generation.h"

#include <chrono>
#include <utility>

#include "base/status.h"

namespace weft {

Generation::Generation(Scheduler* scheduler, size_t buffered)
    : scheduler_(scheduler), mailbox_(std::make_shared<Mailbox>(buffered)) {}

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

absl::StatusOr<std::vector<PromptEvent>> Generation::Take(absl::Duration wait) {
  std::vector<PromptEvent> events;
  {
    std::unique_lock<std::mutex> lock(mailbox_->mutex);
    mailbox_->came.wait_until(
        lock,
        std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(wait),
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
  }
  return all;
}

}  // namespace weft
