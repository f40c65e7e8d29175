#include "runtime/generation/mask_maker.h"

#include <algorithm>
#include <cstdint>

namespace weft {
namespace {

// Units of TokenConstraint::Prepare: some 10 us, and some 500 us.
constexpr int64_t kAtOnce = 2000;
constexpr int64_t kPart = 100000;

double Seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

MaskMaker::~MaskMaker() {
  if (!thread_.joinable()) return;
  {
    const absl::MutexLock lock(&mutex_);
    stop_ = true;
    work_.SignalAll();
  }
  thread_.join();
}

void MaskMaker::Add(Job* job) {
  if (job->constraint_->Prepare(kAtOnce)) {
    job->ready_.store(true, std::memory_order_release);
    return;
  }
  job->ready_.store(false, std::memory_order_release);
  {
    const absl::MutexLock lock(&mutex_);
    jobs_.push_back(job);
    work_.SignalAll();
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
}

void MaskMaker::Remove(Job* job) {
  const absl::MutexLock lock(&mutex_);
  job->removed_ = true;
  while (current_ == job) ready_.Wait(&mutex_);
  job->removed_ = false;
  jobs_.erase(std::remove(jobs_.begin(), jobs_.end(), job), jobs_.end());
}

void MaskMaker::Wait(absl::Duration most) {
  const SteadyTime until = SteadyTimeIn(most);
  const absl::MutexLock lock(&mutex_);
  while (!made_ && !ready_.WaitUntil(&mutex_, until)) {
  }
  made_ = false;
}

double MaskMaker::Delay(Job* job, Job::Time now) const {
  if (job->counted_ != Job::Time::min()) {
    job->seconds_left_ =
        std::min(kMostSeconds,
                 job->seconds_left_ + kShare * Seconds(now - job->counted_));
  }
  job->counted_ = now;
  if (!shared_.load() || job->seconds_left_ > 0) return 0;
  return -job->seconds_left_ / kShare;
}

void MaskMaker::Loop() {
  absl::MutexLock lock(&mutex_);
  while (!stop_) {
    // The first in the row that may go on.
    const Job::Time begin = std::chrono::steady_clock::now();
    double delay = 0.01;  // others may have ended till then
    size_t next = 0;
    for (; next < jobs_.size(); ++next) {
      const double wanted = Delay(jobs_[next], begin);
      if (wanted == 0) break;
      delay = std::min(delay, wanted);
    }
    if (next == jobs_.size()) {
      if (jobs_.empty()) {
        work_.Wait(&mutex_);
      } else {
        work_.WaitUntil(&mutex_, SteadyTimeIn(absl::Seconds(delay)));
      }
      continue;
    }
    Job* const job = jobs_[next];
    jobs_.erase(jobs_.begin() + next);
    current_ = job;
    mutex_.Unlock();
    const bool done = job->constraint_->Prepare(kPart);
    const Job::Time end = std::chrono::steady_clock::now();
    mutex_.Lock();
    current_ = nullptr;
    job->seconds_left_ -= Seconds(end - begin);
    if (done) {
      job->ready_.store(true, std::memory_order_release);
      made_ = true;
    } else if (!job->removed_) {
      jobs_.push_back(job);
    }
    ready_.SignalAll();
  }
}

}  // namespace weft
