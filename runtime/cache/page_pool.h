// Which pages of the KV cache belong to which sequence: the book-keeping,
// without the memory.
//
// Pages hold kPageTokens positions each (Kwon et al., "Efficient Memory
// Management for Large Language Model Serving with PagedAttention", 2023). All
// states of the model share one table: page 5 is page 5 of every layer's keys
// and values. Pages are given lowest first while fresh, so that a short run
// touches little memory.
//
// A page may have several holders: sequences that begin alike share it, and
// none of them may write to it. What a kept page holds stays, though a single
// holder may add to it; when its last holder lets go it is idle, until it is
// dropped: prefix_cache.h.
//
// Not thread-safe; change it between steps only. Allocates nothing after
// construction but an error's message.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace weft {

// Pages that hold `tokens` positions.
int64_t PagesForTokens(int64_t tokens);

class PagePool {
 public:
  // REQUIRES: all above 0, slots * pages_per_sequence fits in memory (KvCache
  // checks what comes from outside). `slots`: sequences at the same time;
  // `pages_per_sequence`: the most that one may hold.
  PagePool(int32_t pages, int32_t slots, int64_t pages_per_sequence);

  // Makes sure that positions below `tokens` of a slot have pages; keeps those
  // it has. All or nothing. Errors: no such slot, more than pages_per_sequence,
  // or fewer pages free than needed (kResourceExhausted, with both numbers).
  absl::Status Reserve(int32_t slot, int64_t tokens);

  // Gives back the pages that only hold positions from `tokens` on. No error if
  // the slot has fewer. An error, and no change, if the last page that stays
  // would be written again though others hold it or it is kept.
  absl::Status Truncate(int32_t slot, int64_t tokens);

  // Gives back all pages of a slot.
  absl::Status Release(int32_t slot);

  // Adds a page that is held or idle to the end of a slot's.
  absl::Status Share(int32_t slot, int32_t page);

  // Puts another page that is held or idle, with the same content, in the place
  // of a slot's page `index`.
  absl::Status Replace(int32_t slot, int64_t index, int32_t page);

  // From now on the page, which is held, becomes idle when its last holder
  // gives it back, instead of free.
  void Keep(int32_t page);
  // Takes Keep back: an idle page becomes free.
  void Drop(int32_t page);

  int32_t pages() const { return pages_; }
  int32_t slots() const { return static_cast<int32_t>(held_.size()); }
  int64_t pages_per_sequence() const { return pages_per_sequence_; }
  int32_t free_pages() const { return static_cast<int32_t>(free_.size()); }
  int32_t idle_pages() const { return idle_; }
  // Slots that hold a page.
  int32_t holders(int32_t page) const { return holders_[page]; }
  // Pages that a slot holds now.
  int64_t held_pages(int32_t slot) const { return held_[slot]; }

  // [slots][pages_per_sequence]; -1 where no page is. Never moves.
  const int32_t* table() const { return table_.data(); }
  int32_t page(int32_t slot, int64_t index) const {
    return table_[slot * pages_per_sequence_ + index];
  }

 private:
  absl::Status CheckArguments(int32_t slot, int64_t tokens) const;
  absl::Status CheckShared(int32_t page) const;
  void Hold(int32_t page);
  void GiveBack(int32_t page);

  const int32_t pages_;
  const int64_t pages_per_sequence_;
  std::vector<int32_t> table_;
  std::vector<int64_t> held_;     // by slot
  std::vector<int32_t> free_;     // the last is given next
  std::vector<int32_t> holders_;  // by page
  std::vector<bool> kept_;        // by page
  int32_t idle_ = 0;              // kept, without holders
};

}  // namespace weft
