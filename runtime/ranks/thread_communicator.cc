#include "runtime/ranks/thread_communicator.h"

#include <cstring>

#include "absl/synchronization/mutex.h"

namespace weft {
namespace {

// What the ranks share. A call is an exchange of pointers: all come, all read,
// all go.
class Meeting {
 public:
  explicit Meeting(int ranks) : given_(ranks) {}

  absl::Status Exchange(int rank, const void* own,
                        const std::function<void()>& read) {
    given_[rank] = static_cast<const uint8_t*>(own);
    if (!Meet()) return Gone();
    read();
    return Meet() ? absl::OkStatus() : Gone();
  }

  const uint8_t* given(int rank) const { return given_[rank]; }
  int ranks() const { return static_cast<int>(given_.size()); }

  void Abort() {
    const absl::MutexLock lock(&mutex_);
    aborted_ = true;
  }

 private:
  static absl::Status Gone() {
    return absl::UnavailableError("a rank has ended: no step can be run");
  }

  // False where a rank has ended.
  bool Meet() {
    const absl::MutexLock lock(&mutex_);
    const int64_t meeting = meetings_;
    if (++present_ == ranks()) {
      present_ = 0;
      ++meetings_;
    }
    const auto over = [&] { return aborted_ || meetings_ != meeting; };
    mutex_.Await(absl::Condition(&over));
    return !aborted_;
  }

  absl::Mutex mutex_;
  std::vector<const uint8_t*> given_;
  int present_ = 0;
  int64_t meetings_ = 0;
  bool aborted_ = false;
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(int rank, std::shared_ptr<Meeting> meeting)
      : rank_(rank), meeting_(std::move(meeting)) {}

  int rank() const override { return rank_; }
  int ranks() const override { return meeting_->ranks(); }

  absl::Status AllGather(const void* own, absl::Span<const int64_t> bytes,
                         uint8_t* all) override {
    return meeting_->Exchange(rank_, own, [&] {
      for (int r = 0; r < ranks(); ++r) {
        std::memcpy(all, meeting_->given(r), bytes[r]);
        all += bytes[r];
      }
    });
  }

  absl::Status Broadcast(void* data, int64_t bytes) override {
    return meeting_->Exchange(rank_, data, [&] {
      if (rank_ != 0) std::memcpy(data, meeting_->given(0), bytes);
    });
  }

  void Abort(const absl::Status&) override { meeting_->Abort(); }

 private:
  const int rank_;
  const std::shared_ptr<Meeting> meeting_;
};

}  // namespace

std::vector<std::shared_ptr<Communicator>> ThreadCommunicators(int ranks) {
  const auto meeting = std::make_shared<Meeting>(ranks);
  std::vector<std::shared_ptr<Communicator>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(std::make_shared<ThreadCommunicator>(rank, meeting));
  }
  return all;
}

}  // namespace weft
