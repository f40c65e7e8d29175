// Makes the masks of constraints (TokenConstraint::Prepare) on a thread of its
// own, so that nobody's tokens wait for somebody else's grammar.
//
// Idea: the thread goes round all constraints that have something to do and
// does a small part for each, so that one that is hard holds up none that is
// easy. While others generate without it (SetShared), a constraint gets a part
// of each second only; what it has not used, it may use later up to a tenth of
// a second. When a mask is there changes no result, only the step in which its
// token is chosen.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_cond_var.h"
#include "text/token_constraint.h"

namespace weft {

class MaskMaker {
 public:
  // Of one sequence; at one place while it is known here.
  class Job {
   public:
    explicit Job(TokenConstraint* constraint) : constraint_(constraint) {}
    // Whether the mask is there: the constraint is the caller's again.
    bool ready() const { return ready_.load(std::memory_order_acquire); }

   private:
    friend class MaskMaker;
    using Time = std::chrono::steady_clock::time_point;

    TokenConstraint* const constraint_;
    std::atomic<bool> ready_{true};
    bool removed_ = false;  // once the part that is being worked on is done
    double seconds_left_ = kMostSeconds;  // of work
    Time counted_ = Time::min();          // when that was so
  };

  // Of each second that others generate in, and at once.
  static constexpr double kShare = 0.25;
  static constexpr double kMostSeconds = 0.1;

  // Ends the thread.
  ~MaskMaker();

  // Something has been accepted, or nothing asked yet: makes the next mask.
  // What takes microseconds is done at once. Until it is ready, or Remove, the
  // constraint is this object's alone. Starts the thread when there has been
  // none.
  void Add(Job* job);
  // Takes back a job that may or may not be known; waits for a part of work.
  void Remove(Job* job);
  // Whether others generate, so that constraints must share.
  void SetShared(bool shared) { shared_.store(shared); }
  // Waits until some mask has become ready since the last call, or no longer
  // than this.
  void Wait(absl::Duration most);

 private:
  void Loop();
  // How long until the job has something left to use; 0: now.
  double Delay(Job* job, Job::Time now) const;

  absl::Mutex mutex_;
  SteadyCondVar work_;   // something to do
  SteadyCondVar ready_;  // a mask is there, or a part is done
  std::vector<Job*> jobs_ ABSL_GUARDED_BY(mutex_);  // the next one first
  Job* current_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool made_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> shared_{false};
  std::thread thread_;
};

}  // namespace weft
