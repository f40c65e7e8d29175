// One model by several ranks: rank 0 has the requests and decides everything;
// the others hold their own parts of the weights and of the cache, and do what
// it does.
//
// Before a step, rank 0 tells what changed in its cache since the last one
// (calls and their arguments, some 24 bytes each), and the step's ids,
// positions, slots and wanted rows. Nothing else but the values of all_gather
// nodes is exchanged.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/execution/executor.h"
#include "runtime/ranks/communicator.h"

namespace weft {

// Something that all ranks must agree on; without a value it is not known here,
// and agrees with any.
struct RankFact {
  std::string name, value;
};

// An error, told to all ranks, unless their facts agree: what differs, and all
// facts of two ranks. All must have the same names in the same order, or they
// do not agree. The first that ranks say to each other.
absl::Status CheckSameOnAllRanks(Communicator* communicator,
                                 const std::vector<RankFact>& facts);

// Of rank 0. Not thread-safe.
class StepLeader : public CacheObserver {
 public:
  // The communicator must outlive it. Room for a step of so many tokens, with
  // so many scales of adapters each.
  StepLeader(Communicator* communicator, int64_t most_tokens, int64_t adapters);

  void Changed(const CacheChange& change) override {
    changes_.push_back(change);
  }
  // Before the step runs here. Allocates nothing, as a rule.
  absl::Status Send(const Batch& batch);
  // The others' FollowSteps return.
  absl::Status End();

 private:
  absl::Status SendMessage(int64_t kind, const Batch& batch);

  Communicator* const communicator_;
  std::vector<CacheChange> changes_;
  std::vector<uint8_t> message_;
};

// Of the other ranks: does what rank 0 tells, until it ends.
absl::Status FollowSteps(Communicator* communicator, Executor* executor,
                         KvCache* cache, const Plan& plan);

}  // namespace weft
