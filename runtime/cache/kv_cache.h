// The memory of all states: keys and values, in pages that sequences take and
// give back, and states by sequence, in slots.
//
// One block of memory; each state (a layer's keys, or its values) has its part,
// and page p of a state lies at p * page_bytes from the start of its part. All
// states share the page table of one PagePool. Fresh pages come from the system
// as zeros, untouched until used; a page that had an owner before is cleared
// when it is given out again, so that no value of one sequence, least of all a
// NaN, ever reaches another. Shared pages (page_pool.h) are never given out, so
// never cleared. (Positions inside a sequence's own last page that Truncate
// left behind, or that ReserveCopy brought along, keep their old rows until
// they are written again; attention reads no value behind a row's position.)
//
// A state by sequence (slot_layout.h) has a place for each slot and, behind
// these, for each checkpoint: a copy of a slot's states that who runs sequences
// keeps, to go on from there later; and behind these, where that is asked for,
// one for each slot's mark (runtime/execution/state_history.h). Such states
// cannot go back by themselves; of what position they are is known here, and
// the executor asks.
//
// Not thread-safe; change it between steps only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/kernels/kernel.h"
#include "runtime/cache/page_pool.h"
#include "runtime/machine/arena.h"

namespace weft {

// Of one state: bytes of a page (kPageTokens positions of all its KV heads) or
// of a slot, a multiple of 64.
struct StateBytes {
  // Not explicit: by position is the common case.
  StateBytes(int64_t bytes, bool by_sequence = false)
      : bytes(bytes), by_sequence(by_sequence) {}

  int64_t bytes;
  bool by_sequence;
};

// A call that changed what a cache holds; its arguments, by the names that they
// have there.
struct CacheChange {
  enum Kind : int32_t {
    kReserve,
    kReserveCopy,
    kTruncate,
    kRelease,
    kShare,
    kReplace,
    kKeep,
    kDrop,
    kSave,
    kRestore,
    // The executor's, which keep states (Executor::Mark, Truncate).
    kMark,
    kTruncateStates,
  };
  Kind kind;
  int32_t slot = 0;
  int64_t number = 0;  // tokens, a page, a checkpoint
  int64_t index = 0;
};

// Told of each such call that succeeded, in order: so that another cache of the
// same shape can hold what this one does (runtime/execution/rank_steps.h).
class CacheObserver {
 public:
  virtual ~CacheObserver() = default;
  virtual void Changed(const CacheChange& change) = 0;
};

struct KvCacheShape {
  std::vector<StateBytes> states;
  int64_t pages;
  int32_t slots;
  int64_t pages_per_sequence;
  int32_t checkpoints = 0;  // of states by sequence
  bool marks = false;       // a place for each slot's
};

// What a state takes, for so many pages or for so many slots and checkpoints:
// it begins on a page of the system, so that states do not share one. REQUIRES:
// the product fits.
int64_t StatePartBytes(int64_t bytes, int64_t count);

// What Create will take for the states, known before anything is taken. Errors:
// a number in the shape that cannot be.
absl::StatusOr<int64_t> KvCacheBytes(const KvCacheShape& shape);

class KvCache {
 public:
  static absl::StatusOr<std::unique_ptr<KvCache>> Create(
      const KvCacheShape& shape, bool huge_pages = false);

  // As PagePool's, and clears what was used before.
  absl::Status Reserve(int32_t slot, int64_t tokens);

  // Adds one page to the end of a slot's, with the content of `page`, which is
  // held, idle, or has become free just now: it may then be the one that is
  // given. Errors as Reserve.
  absl::Status ReserveCopy(int32_t slot, int32_t page);

  // Bytes of a page, of all states by position one behind the other; and what
  // is in one, to or from as many bytes. A page that is written must be held by
  // one slot alone and not be kept.
  int64_t page_bytes() const { return page_bytes_; }
  void ReadPage(int32_t page, uint8_t* bytes) const;
  void WritePage(int32_t page, const uint8_t* bytes);

  absl::Status Truncate(int32_t slot, int64_t tokens);
  absl::Status Release(int32_t slot);
  absl::Status Share(int32_t slot, int32_t page);
  absl::Status Replace(int32_t slot, int64_t index, int32_t page);
  void Keep(int32_t page);
  void Drop(int32_t page);
  // The same call as `change` tells of. Errors: the call's, a change that no
  // cache makes.
  absl::Status Apply(const CacheChange& change);
  // Told of changes from now on; null: nobody. It must outlive them.
  void Observe(CacheObserver* observer) { observer_ = observer; }
  // For changes that are made on top of the cache.
  void Tell(const CacheChange& change) {
    if (observer_ != nullptr) observer_->Changed(change);
  }

  const PagePool& pool() const { return pool_; }

  // Whether there are states by sequence, and what those of one take.
  bool has_slots() const { return slot_bytes_ > 0; }
  int64_t slot_bytes() const { return slot_bytes_; }
  int32_t checkpoints() const { return checkpoints_; }
  // Tokens that the slot's states by sequence have seen; -1: they are of no
  // use. The executor sets it.
  int64_t position(int32_t slot) const { return positions_[slot]; }
  void SetPosition(int32_t slot, int64_t position) {
    positions_[slot] = position;
  }
  // The states by sequence of a slot, to or from slot_bytes(); those that are
  // written have seen `position` tokens.
  void ReadSlot(int32_t slot, uint8_t* bytes) const;
  void WriteSlot(int32_t slot, const uint8_t* bytes, int64_t position);
  // Copies the states by sequence, with their position.
  void Save(int32_t slot, int32_t checkpoint);
  void Restore(int32_t checkpoint, int32_t slot);

  // The position to which the slot's states can go back; -1: none. The
  // executor sets it, and fills its place.
  int64_t mark(int32_t slot) const { return marks_[slot]; }
  void SetMark(int32_t slot, int64_t position) { marks_[slot] = position; }
  int32_t mark_place(int32_t slot) const {
    return pool_.slots() + checkpoints_ + slot;
  }
  void CopyFromMark(int32_t slot);

  // For the operands of kernels; valid as long as the cache.
  absl::Span<const KvState> states() const { return states_; }

  int64_t bytes() const { return memory_.bytes(); }

 private:
  KvCache(const KvCacheShape& shape, Arena memory);
  void CopySlot(int32_t from, int32_t to);

  Arena memory_;
  PagePool pool_;
  CacheObserver* observer_ = nullptr;
  std::vector<KvState> states_;
  std::vector<bool> was_used_;  // by page
  int64_t slot_bytes_ = 0, page_bytes_ = 0;
  int32_t checkpoints_ = 0;
  std::vector<int64_t> positions_;  // by slot, then by checkpoint
  std::vector<int64_t> marks_;      // by slot
};

}  // namespace weft
