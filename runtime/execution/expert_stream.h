// Runs products with experts that are not all in memory (streamed_experts.h):
// reads what a step has chosen and is not there.
//
// A block's experts have slots; a slot has room for all matrices of one expert.
// A node runs once for the experts that are there, while those that are not are
// read by threads of their own, and again for these as they come
// (KernelCall::experts); where more were chosen than there are slots, in as
// many turns as it takes. What rows have of one expert depends on no other, so
// no bit depends on what was where. As soon as the router has chosen, all that
// the block's products will read is asked for, in the order in which they need
// it.
//
// Each matrix is compared with its checksum whenever it is read. An error of
// the disk ends the step; the next one that needs the matrix reads it again.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/direct_file.h"
#include "runtime/execution/expert_slots.h"
#include "runtime/machine/arena.h"
#include "runtime/plan/plan.h"

namespace weft {

class ExpertStream {
 public:
  // Threads that read: disks are fastest with several reads at a time.
  static constexpr int kReaders = 8;

  struct Stats {
    int64_t chosen = 0;  // matrices that products needed
    int64_t found = 0;   // of these, were there or on their way
    int64_t bytes = 0;   // read
  };

  // Of plan.streamed and plan.streamed_file, with memory for its slots.
  // Allocates nothing later, but for an error's message. `plan` must outlive
  // it.
  static absl::StatusOr<std::unique_ptr<ExpertStream>> Create(const Plan& plan,
                                                              bool huge_pages);
  ~ExpertStream();

  // The streamed weight of this name, or -1.
  int Find(absl::string_view name) const;

  // Calls run(experts) with a table for KernelCall::experts, until all experts
  // of `ids`, which `tokens` tokens chose, have had their turn. One thread at a
  // time. Errors: of reading, and a checksum that is wrong.
  absl::Status Run(int weight, absl::Span<const int32_t> ids, int64_t tokens,
                   absl::FunctionRef<void(const uint8_t* const* experts)> run);

  Stats stats() const;

 private:
  enum class State : uint8_t { kEmpty, kReading, kThere };

  struct Weight {
    std::string name;
    int group;
    int64_t bytes;   // of a matrix
    int64_t offset;  // of the first in the file
    int64_t room;    // of the matrix in a slot
    const std::vector<uint64_t>* checksums;
    std::vector<State> states;  // of each slot
  };
  struct Group {
    ExpertSlots slots;
    std::vector<int> weights;
    int64_t slot_bytes;
    uint8_t* memory;
    std::vector<bool> in_use;  // slots that the node at hand still needs
  };
  struct Read {
    int weight, expert, slot;
  };

  ExpertStream(const Plan& plan, DirectFile file, std::string path);

  uint8_t* RoomOf(const Weight& weight, int slot) const {
    return groups_[weight.group].memory +
           slot * groups_[weight.group].slot_bytes + weight.room;
  }
  int64_t OffsetOf(const Weight& weight, int expert) const {
    return weight.offset + expert * weight.bytes;
  }
  void Work();
  absl::Status Load(const Read& read) const;
  void Ask(const Read& read);  // with mutex_ held
  absl::Status RunTurns(
      int weight, absl::FunctionRef<void(const uint8_t* const* experts)> run);
  static size_t TurnSize(const Group& group);
  void AskForNext(int weight);
  absl::Status WaitForNext(int weight);

  const DirectFile file_;
  const std::string path_;
  Arena memory_;
  std::vector<Weight> weights_;
  std::vector<Group> groups_;
  // Of the node at hand: experts that have their turn, that come next, and that
  // are not yet asked for.
  std::vector<int> now_, next_, missing_;
  bool fits_ = false;  // all together
  std::vector<bool> seen_;
  std::vector<const uint8_t*> table_;

  mutable std::mutex mutex_;
  std::condition_variable asked_, done_;
  // A ring: each weight and slot is in it once at most.
  std::vector<Read> reads_;
  size_t first_ = 0, count_ = 0;
  absl::Status error_;  // the last
  Stats stats_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace weft
