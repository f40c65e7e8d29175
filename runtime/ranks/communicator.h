// What several processes that run one model together tell each other.
//
// Ranks are numbered from 0. All of them make the same calls in the same order;
// a call returns when its own part is done. Rank 0 leads: it alone knows
// requests (runtime/execution/rank_steps.h). One thread of a rank at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  // Rank r gives bytes[r] bytes at `own`; what all give lies in `all` then,
  // rank after rank. `own` lies outside `all`. Allocates nothing. Errors: a
  // rank that is gone, more bytes than a message takes.
  virtual absl::Status AllGather(const void* own,
                                 absl::Span<const int64_t> bytes,
                                 uint8_t* all) = 0;

  // What rank 0 has at `data`, for all. Others may wait long without using a
  // processor. Errors as above.
  virtual absl::Status Broadcast(void* data, int64_t bytes) = 0;

  // Ends all ranks, since this one cannot go on: who waits for it gets an
  // error, or its process ends, as this one does where ranks are processes;
  // then `why` is told on standard error, in one line.
  virtual void Abort(const absl::Status& why) = 0;
};

}  // namespace weft
