// /slots: what texts the server holds, by number, as llama.cpp's server tells
// it; to save them and go on after a restart.
//
// Idea: weft finds what is computed by its tokens, wherever it lies, and a slot
// of the scheduler is nobody's for longer than a turn. So here a slot is a
// place in a list: a text goes where the longest beginning of it was last, or
// where the client says (id_slot). What is saved are its tokens: they say all,
// to the bit, and are of use on any machine.
//
// Limit: restoring runs the tokens, once, as reading the prompt would.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace weft {

class Slots {
 public:
  explicit Slots(int64_t count) : slots_(count) {}

  struct Seen {
    int64_t tokens = 0;
    bool running = false;
  };
  std::vector<Seen> List() const;

  // The place of a text that begins with these tokens; `wanted` goes before,
  // and is below 0 or in range.
  int64_t Begin(int64_t wanted, absl::Span<const int32_t> prompt);
  // It has ended, with these tokens.
  void End(int64_t slot, std::vector<int32_t> tokens);

  int64_t size() const { return slots_.size(); }
  std::vector<int32_t> Tokens(int64_t slot) const;
  void Set(int64_t slot, std::vector<int32_t> tokens);

 private:
  struct Slot {
    std::vector<int32_t> tokens;
    int64_t running = 0;
    int64_t used = 0;  // when
  };

  mutable absl::Mutex mutex_;
  std::vector<Slot> slots_;  // its size never changes
  int64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
