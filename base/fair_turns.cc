#include "base/fair_turns.h"

#include <algorithm>

namespace weft {

FairTurns::Turn::Turn(FairTurns* turns, uint64_t client) : turns_(turns) {
  const absl::MutexLock lock(&turns_->mutex_);
  const auto self =
      turns_->waiting_.insert(turns_->waiting_.end(), {client, false});
  turns_->Admit();
  turns_->mutex_.Await(absl::Condition(&self->may_run));
  turns_->waiting_.erase(self);
}

FairTurns::Turn::~Turn() {
  const absl::MutexLock lock(&turns_->mutex_);
  ++turns_->free_;
  turns_->Admit();
}

int64_t FairTurns::waiting() const {
  const absl::MutexLock lock(&mutex_);
  return std::count_if(waiting_.begin(), waiting_.end(),
                       [](const Waiter& waiter) { return !waiter.may_run; });
}

void FairTurns::Admit() {
  while (free_ > 0) {
    const auto last = [this](const Waiter& waiter) {
      const auto began = began_.find(waiter.client);
      return began == began_.end() ? 0 : began->second;
    };
    Waiter* next = nullptr;
    for (Waiter& waiter : waiting_) {
      if (waiter.may_run) continue;
      if (next == nullptr || last(waiter) < last(*next)) next = &waiter;
    }
    if (next == nullptr) {
      if (waiting_.empty()) began_.clear();
      return;
    }
    next->may_run = true;
    --free_;
    began_[next->client] = ++turns_;
  }
}

}  // namespace weft
