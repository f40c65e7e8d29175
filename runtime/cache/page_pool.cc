#include "runtime/cache/page_pool.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "ops/kernels/kernel.h"

namespace weft {

int64_t PagesForTokens(int64_t tokens) {
  return tokens / kPageTokens + (tokens % kPageTokens != 0);
}

PagePool::PagePool(int32_t pages, int32_t slots, int64_t pages_per_sequence)
    : pages_(pages),
      pages_per_sequence_(pages_per_sequence),
      table_(slots * pages_per_sequence, -1),
      held_(slots, 0),
      holders_(pages, 0),
      kept_(pages, false) {
  free_.reserve(pages);
  for (int32_t page = pages - 1; page >= 0; --page) free_.push_back(page);
}

absl::Status PagePool::CheckArguments(int32_t slot, int64_t tokens) const {
  if (slot < 0 || slot >= slots()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no such sequence: slot ", slot, ": there are ", slots()));
  }
  if (tokens < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot hold sequence: slot ", slot, ": ", tokens, " tokens"));
  }
  return absl::OkStatus();
}

absl::Status PagePool::CheckShared(int32_t page) const {
  if (page >= 0 && page < pages_ && (holders_[page] > 0 || kept_[page])) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "cannot share page ", page, ": it has no content, of ", pages_));
}

void PagePool::Hold(int32_t page) {
  if (holders_[page]++ == 0 && kept_[page]) --idle_;
}

void PagePool::GiveBack(int32_t page) {
  if (--holders_[page] > 0) return;
  if (kept_[page]) {
    ++idle_;
  } else {
    free_.push_back(page);
  }
}

absl::Status PagePool::Reserve(int32_t slot, int64_t tokens) {
  absl::Status valid = CheckArguments(slot, tokens);
  if (!valid.ok()) return valid;
  const int64_t wanted = PagesForTokens(tokens);
  if (wanted > pages_per_sequence_) {
    return absl::OutOfRangeError(absl::StrCat(
        "sequence is too long: slot ", slot, ": ", tokens,
        " tokens, the context holds ", pages_per_sequence_ * kPageTokens,
        ", shorten it or choose a larger context"));
  }
  const int64_t needed = wanted - held_[slot];
  if (needed > free_pages()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "KV cache is full: slot ", slot, ": needs ", needed, " more pages of ",
        kPageTokens, " tokens, ", free_pages(), " of ", pages_,
        " are free, wait for another sequence to end or make the cache "
        "larger"));
  }
  int32_t* const row = &table_[slot * pages_per_sequence_];
  while (held_[slot] < wanted) {
    const int32_t page = free_.back();
    free_.pop_back();
    Hold(page);
    row[held_[slot]++] = page;
  }
  return absl::OkStatus();
}

absl::Status PagePool::Truncate(int32_t slot, int64_t tokens) {
  absl::Status valid = CheckArguments(slot, tokens);
  if (!valid.ok()) return valid;
  const int64_t kept = PagesForTokens(tokens);
  int32_t* const row = &table_[slot * pages_per_sequence_];
  if (tokens % kPageTokens != 0 && kept <= held_[slot]) {
    const int32_t last = row[kept - 1];
    if (holders_[last] > 1 || kept_[last]) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot cut sequence: slot ", slot, ": ", tokens,
          " tokens end inside a page that others share: cut at a multiple of ",
          kPageTokens));
    }
  }
  // From the end, so that the same pages come back in the same order.
  while (held_[slot] > kept) {
    int32_t& page = row[--held_[slot]];
    GiveBack(page);
    page = -1;
  }
  return absl::OkStatus();
}

absl::Status PagePool::Release(int32_t slot) { return Truncate(slot, 0); }

absl::Status PagePool::Share(int32_t slot, int32_t page) {
  WEFT_RETURN_IF_ERROR(CheckArguments(slot, 0));
  WEFT_RETURN_IF_ERROR(CheckShared(page));
  if (held_[slot] == pages_per_sequence_) {
    return absl::OutOfRangeError(absl::StrCat("sequence is too long: slot ",
                                              slot, ": holds all its ",
                                              pages_per_sequence_, " pages"));
  }
  Hold(page);
  table_[slot * pages_per_sequence_ + held_[slot]++] = page;
  return absl::OkStatus();
}

absl::Status PagePool::Replace(int32_t slot, int64_t index, int32_t page) {
  WEFT_RETURN_IF_ERROR(CheckArguments(slot, index));
  WEFT_RETURN_IF_ERROR(CheckShared(page));
  if (index >= held_[slot]) {
    return absl::OutOfRangeError(absl::StrCat("cannot replace page ", index,
                                              " of slot ", slot, ": it holds ",
                                              held_[slot]));
  }
  int32_t& place = table_[slot * pages_per_sequence_ + index];
  Hold(page);
  GiveBack(place);
  place = page;
  return absl::OkStatus();
}

void PagePool::Keep(int32_t page) { kept_[page] = true; }

void PagePool::Drop(int32_t page) {
  if (!kept_[page]) return;
  kept_[page] = false;
  if (holders_[page] > 0) return;
  --idle_;
  free_.push_back(page);
}

}  // namespace weft
