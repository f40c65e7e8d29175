#include "chat/answer_stream.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace weft::chat {

struct AnswerStream::Mailbox {
  explicit Mailbox(int fd) : fd(fd) {}
  ~Mailbox() { close(fd); }

  void Put(const Event& event) {
    const absl::MutexLock lock(&mutex);
    events.push_back({event, absl::Now()});
    const uint64_t one = 1;
    const ssize_t written = write(fd, &one, sizeof(one));
    static_cast<void>(written);  // fails only when it is readable for long
  }

  const int fd;
  absl::Mutex mutex;
  std::vector<TimedEvent> events ABSL_GUARDED_BY(mutex);
};

absl::StatusOr<std::unique_ptr<AnswerStream>> AnswerStream::Create(
    Scheduler* scheduler) {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) {
    return absl::ResourceExhaustedError(
        "file descriptor: none is left: close other files, or raise the limit "
        "(ulimit -n)");
  }
  return std::unique_ptr<AnswerStream>(
      new AnswerStream(scheduler, std::make_shared<Mailbox>(fd)));
}

AnswerStream::AnswerStream(Scheduler* scheduler,
                           std::shared_ptr<Mailbox> mailbox)
    : scheduler_(scheduler), mailbox_(std::move(mailbox)) {}

AnswerStream::~AnswerStream() { Stop(); }

int AnswerStream::fd() const { return mailbox_->fd; }

absl::Status AnswerStream::Start(Request request) {
  absl::StatusOr<RequestId> id = scheduler_->Submit(
      std::move(request),
      [mailbox = mailbox_](const Event& event) { mailbox->Put(event); });
  if (id.ok()) id_ = *id;
  return id.status();
}

void AnswerStream::Stop() {
  if (id_) scheduler_->Cancel(*id_);
}

std::vector<TimedEvent> AnswerStream::Take() {
  const absl::MutexLock lock(&mailbox_->mutex);
  uint64_t count;
  const ssize_t cleared = read(mailbox_->fd, &count, sizeof(count));
  static_cast<void>(cleared);  // fails when there was nothing
  std::vector<TimedEvent> events = std::exchange(mailbox_->events, {});
  if (!events.empty() && events.back().event.last) id_.reset();
  return events;
}

}  // namespace weft::chat
