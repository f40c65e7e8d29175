#include "runtime/api/completion.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace weft {
namespace {

// Gathers events until the last.
class Gatherer {
 public:
  // Of a single text the memory is taken now, so that its tokens take none.
  Gatherer(const Request& request, int64_t capacity, EventCallback callback)
      : callback_(std::move(callback)) {
    completion_.choices.resize(std::clamp(request.choices, 0, kMaxChoices));
    const int64_t most = request.max_tokens < 0
                             ? capacity
                             : std::min(request.max_tokens, capacity);
    if (completion_.choices.size() != 1) return;
    completion_.choices[0].tokens.reserve(most);
    completion_.choices[0].text.reserve(most * kBytesPerToken);
  }

  std::future<absl::StatusOr<Completion>> result() {
    return promise_.get_future();
  }

  void Take(const Event& event) {
    if (callback_) callback_(event);
    ChoiceResult& choice = completion_.choices[event.choice];
    choice.text += event.text;
    choice.tokens.insert(choice.tokens.end(), event.tokens.begin(),
                         event.tokens.end());
    if (!event.finished) return;
    choice.reason = event.reason;
    choice.stop_string = event.stop_string;
    choice.embedding = event.embedding;
    status_.Update(event.status);
    if (!event.last) return;
    completion_.usage = event.usage;
    if (status_.ok()) {
      promise_.set_value(std::move(completion_));
    } else {
      promise_.set_value(status_);
    }
  }

 private:
  // Of usual vocabularies, rather too many than too few.
  static constexpr int64_t kBytesPerToken = 6;

  EventCallback callback_;
  Completion completion_;
  absl::Status status_;
  std::promise<absl::StatusOr<Completion>> promise_;
};

}  // namespace

// What all copies of a callback share.
struct EventQueue::Ticket {
  explicit Ticket(std::shared_ptr<EventQueue> queue)
      : queue(std::move(queue)) {}
  ~Ticket() {
    const absl::MutexLock lock(&queue->mutex_);
    if (!ended) --queue->open_requests_;
    queue->changed_.SignalAll();
  }

  const std::shared_ptr<EventQueue> queue;
  bool ended = false;  // its last event is in the queue
};

EventCallback EventQueue::Callback() {
  const absl::MutexLock lock(&mutex_);
  ++open_requests_;
  return [ticket = std::make_shared<Ticket>(shared_from_this())](
             const Event& event) {
    const absl::MutexLock lock(&ticket->queue->mutex_);
    ticket->queue->events_.push_back(event);
    ticket->ended = event.last;
    ticket->queue->changed_.SignalAll();
  };
}

bool EventQueue::Next(absl::Duration longest, Event* event) {
  const absl::MutexLock lock(&mutex_);
  const SteadyTime until = SteadyTimeIn(longest);
  while (events_.empty() && open_requests_ > 0) {
    if (changed_.WaitUntil(&mutex_, until)) break;
  }
  if (events_.empty()) return false;
  *event = std::move(events_.front());
  events_.pop_front();
  if (event->last) --open_requests_;
  return true;
}

bool EventQueue::done() const {
  const absl::MutexLock lock(&mutex_);
  return events_.empty() && open_requests_ == 0;
}

absl::StatusOr<std::future<absl::StatusOr<Completion>>> SubmitForResult(
    Scheduler& scheduler, Request request, EventCallback callback,
    RequestId* id) {
  const auto gatherer = std::make_shared<Gatherer>(
      request, scheduler.capacity(), std::move(callback));
  std::future<absl::StatusOr<Completion>> result = gatherer->result();
  WEFT_ASSIGN_OR_RETURN(
      RequestId submitted,
      scheduler.Submit(std::move(request), [gatherer](const Event& event) {
        gatherer->Take(event);
      }));
  if (id != nullptr) *id = submitted;
  return result;
}

absl::StatusOr<Completion> Complete(Scheduler& scheduler, Request request,
                                    EventCallback callback) {
  WEFT_ASSIGN_OR_RETURN(
      auto result,
      SubmitForResult(scheduler, std::move(request), std::move(callback)));
  return result.get();
}

}  // namespace weft
