// How states by sequence go back a few tokens: for tokens that were only tried.
//
// Such a state is one of all tokens before it and cannot be cut. So where a
// sequence is marked, its states are copied, and of each row behind the mark is
// kept what the nodes that update states read (keys, values, decays: little
// beside a state). To go back is to copy the states, and to run those nodes
// alone again, over the rows that stay. They are the same kernels, which take
// rows in order: so the same bits as if the other rows had never been.
//
// States are copied in the step behind the mark, each just before its node
// runs, which then finds it in the cache of the processor.
//
// Not thread-safe. Allocates nothing after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/kernels/kernel.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/machine/arena.h"
#include "runtime/machine/thread_pool.h"
#include "runtime/plan/slot_updates.h"

namespace weft {

class StateHistory {
 public:
  // One of no rows: nothing goes back.
  StateHistory() = default;

  // Of the sequences of `cache`, which has places for marks and outlives this.
  // Errors: no memory, a state that several nodes write.
  static absl::StatusOr<StateHistory> Create(const Graph& graph, KvCache* cache,
                                             int32_t rows);

  void Mark(int32_t slot);
  // Of a slot whose text begins anew: what was kept is of another one.
  void Forget(int32_t slot);

  // Whether the slot's states can be those after `tokens` tokens again.
  bool Reaches(int32_t slot, int64_t tokens) const;
  // Around a step of these rows.
  void BeginStep(absl::Span<const int32_t> positions,
                 absl::Span<const int32_t> slots);
  void EndStep(bool ran);
  // Within, before the node runs that updates `state`.
  void Keep(int state, const Operand* inputs, ThreadPool* threads);

  // Requires Reaches(slot, tokens). Copies the states of the mark; rows [0,
  // returned) behind it are to run then.
  int64_t GoBack(int32_t slot, int64_t tokens);
  // The operands of `state`'s node for these: rows, and behind the inputs the
  // results. What else is in `operands` stays.
  void SetOperands(int state, int32_t slot, int64_t rows, int inputs,
                   Operand* operands);

 private:
  // Rows of a step that are kept.
  struct Run {
    int32_t slot;
    int64_t row, rows;
    int64_t at;   // behind the mark
    bool copies;  // the states, too
  };
  // What is kept for one state.
  struct Update {
    SlotUpdate nodes;
    uint8_t* rows = nullptr;  // of all slots
  };

  int64_t PositionOf(int32_t slot) const;
  uint8_t* RowsOf(const Update& update, int32_t slot, size_t operand) const;

  KvCache* cache_ = nullptr;  // null: nothing is kept
  int32_t rows_ = 0;
  Arena memory_;
  uint8_t* results_ = nullptr;
  std::vector<Update> updates_;  // by state; without rows where there are none
  std::vector<Run> runs_;        // of the step
  std::vector<int32_t> positions_, sequence_;
};

}  // namespace weft
