// What sequences find computed, in pages, checkpoints and files, and what they
// leave there for others.
#include <algorithm>
#include <limits>

#include "base/status.h"
#include "ops/kernels/kernel.h"
#include "runtime/generation/batcher.h"

namespace weft {
namespace {

// Between two states of a prompt in files, in tokens: they are large.
constexpr int64_t kStoredInterval = 2048;
static_assert(kStoredInterval % kPageTokens == 0, "states stand behind pages");

absl::Span<const int32_t> LastPage(absl::Span<const int32_t> pages) {
  return pages.last(kPageTokens);
}

// Of the last of these whole pages.
PageStore::Key KeyOfLast(const PageStore& store,
                         absl::Span<const int32_t> pages) {
  PageStore::Key key;
  for (size_t end = kPageTokens; end <= pages.size(); end += kPageTokens) {
    key = store.KeyOf(key, LastPage(pages.first(end)));
  }
  return key;
}

}  // namespace

void Batcher::FindPages() {
  size_t i = 0;
  while (i < running_.size()) {
    Sequence* const sequence = running_[i];
    absl::Status status = AttachPages(i);
    if (!status.ok()) Finish(sequence, FinishReason::kError, std::move(status));
    if (i < running_.size() && running_[i] == sequence) ++i;
  }
}

// Takes what of the prefix cache goes on from what is computed: at the start,
// and what others have computed since.
absl::Status Batcher::AttachPages(size_t index) {
  Sequence* const sequence = running_[index];
  if (cache_.has_slots()) return AttachCheckpoint(sequence);
  if (sequence->computed % kPageTokens != 0 || Left(*sequence) <= 1) {
    return absl::OkStatus();
  }
  const uint64_t scope = sequence->request->scope;
  WEFT_ASSIGN_OR_RETURN(
      const int64_t whole,
      prefix_cache_.Attach(sequence->slot, scope, sequence->tokens));
  CountHit(sequence, whole);
  WEFT_ASSIGN_OR_RETURN(
      const int64_t loaded,
      LoadPages(*sequence, sequence->computed,
                static_cast<int64_t>(sequence->tokens.size()) - 1));
  CountHit(sequence, loaded - sequence->computed);
  // A page that is only begun must be copied: better to wait for the whole one.
  if (Left(*sequence) <= 1 || WaitsForOlder(index)) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(
      const int64_t copied,
      prefix_cache_.AttachCopy(sequence->slot, scope, sequence->tokens));
  CountHit(sequence, copied);
  return absl::OkStatus();
}

// Takes whole pages that go on from the token `begin` out of files, up to
// `most` tokens: how many there are then.
absl::StatusOr<int64_t> Batcher::LoadPages(const Sequence& sequence,
                                           int64_t begin, int64_t most) {
  const uint64_t scope = sequence.request->scope;
  if (files_ == nullptr || scope != 0) return begin;
  PageStore& pages = files_->pages();
  const auto tokens = absl::MakeConstSpan(sequence.tokens);
  PageStore::Key key;
  int64_t there = begin;
  for (int64_t end = kPageTokens; end <= most; end += kPageTokens) {
    const int64_t first = end - kPageTokens;
    const auto own = tokens.subspan(first, kPageTokens);
    key = pages.KeyOf(key, own);
    if (first < begin) continue;
    if (!pages.Has(key)) break;
    if (cache_.pool().free_pages() == 0) prefix_cache_.MakeFree(1);
    if (cache_.pool().free_pages() == 0) break;
    WEFT_RETURN_IF_ERROR(cache_.Reserve(sequence.slot, end));
    const int32_t page = cache_.pool().page(sequence.slot, first / kPageTokens);
    const bool read = pages.Read(
        key, first / kPageTokens, own,
        [&](const uint8_t* bytes) { cache_.WritePage(page, bytes); });
    if (!read) {
      WEFT_RETURN_IF_ERROR(cache_.Truncate(sequence.slot, first));
      // What else is damaged goes now, so that it is written anew with this
      // page, and not one after the other with each start.
      CheckPages(key, tokens, end, most);
      break;
    }
    WEFT_RETURN_IF_ERROR(
        prefix_cache_.Add(sequence.slot, scope, tokens.first(end)));
    there = end;
  }
  return there;
}

// Removes damaged files of the pages from the token `begin` on, up to `most`
// tokens; `key`: of the page before.
void Batcher::CheckPages(PageStore::Key key, absl::Span<const int32_t> tokens,
                         int64_t begin, int64_t most) {
  PageStore& pages = files_->pages();
  for (; begin + kPageTokens <= most; begin += kPageTokens) {
    const auto own = tokens.subspan(begin, kPageTokens);
    key = pages.KeyOf(key, own);
    if (pages.Has(key)) pages.Check(key, begin / kPageTokens, own);
  }
}

// Puts the whole pages from this one on, which are computed, into files.
void Batcher::StorePages(const Sequence& sequence, int64_t first_page) {
  if (files_ == nullptr || sequence.request->scope != 0) return;
  PageStore& pages = files_->pages();
  const auto tokens = absl::MakeConstSpan(sequence.tokens);
  PageStore::Key key;
  for (int64_t page = 0; (page + 1) * kPageTokens <= sequence.computed;
       ++page) {
    const auto own = tokens.subspan(page * kPageTokens, kPageTokens);
    key = pages.KeyOf(key, own);
    if (page < first_page) continue;
    pages.Write(key, page, own, [&](uint8_t* bytes) {
      cache_.ReadPage(cache_.pool().page(sequence.slot, page), bytes);
    });
  }
}

// How many of the tokens the longest checkpoint stands behind whose keys and
// values are there too.
int64_t Batcher::FindCheckpoint(const Sequence& sequence,
                                absl::Span<const int32_t> tokens) const {
  if (!checkpoints_.any()) return 0;
  const uint64_t scope = sequence.request->scope;
  return checkpoints_.Find(scope, tokens,
                           prefix_cache_.TokensThere(scope, tokens));
}

// Lets a sequence that has just got its slot begin at a checkpoint.
absl::Status Batcher::AttachCheckpoint(Sequence* sequence) {
  if (sequence->computed > 0) return absl::OkStatus();
  const int64_t found = FindCheckpoint(*sequence, sequence->tokens);
  // Where one is not what it should be, the next shorter may be.
  int64_t before = std::numeric_limits<int64_t>::max();
  for (int64_t stored = FindStored(*sequence);
       stored > found && stored < before; stored = FindStored(*sequence)) {
    WEFT_ASSIGN_OR_RETURN(const bool loaded, LoadStates(sequence, stored));
    if (loaded) return absl::OkStatus();
    before = stored;
  }
  if (found == 0) return absl::OkStatus();
  const uint64_t scope = sequence->request->scope;
  // And one, which stands for the last token and is not counted.
  const absl::Span<const int32_t> tokens =
      absl::MakeConstSpan(sequence->tokens).first(found + 1);
  WEFT_ASSIGN_OR_RETURN(int64_t there,
                        prefix_cache_.Attach(sequence->slot, scope, tokens));
  if (there < found) {
    WEFT_ASSIGN_OR_RETURN(
        const int64_t copied,
        prefix_cache_.AttachCopy(sequence->slot, scope, tokens));
    there += copied;
  }
  // No page could be made free for the copy.
  if (there < found) return prefix_cache_.Release(sequence->slot);
  checkpoints_.Restore(scope, tokens.first(found), sequence->slot);
  sequence->checkpoint = found;
  CountHit(sequence, found);
  return absl::OkStatus();
}

// So many of the sequence's next rows that the step ends where a checkpoint is
// to be made.
int64_t Batcher::RowsToCheckpoint(const Sequence& sequence,
                                  int64_t rows) const {
  int64_t next = NextStored(sequence);
  if (checkpoints_.any()) next = std::min(next, NextCheckpoint(sequence));
  return std::min(rows, next - sequence.computed);
}

int64_t Batcher::NextCheckpoint(const Sequence& sequence) const {
  return checkpoints_.NextAfter(sequence.computed, sequence.checkpoint,
                                sequence.prompt);
}

void Batcher::AddCheckpoint(Sequence* sequence) {
  checkpoints_.Add(
      sequence->slot, sequence->request->scope,
      absl::MakeConstSpan(sequence->tokens).first(sequence->computed));
  sequence->checkpoint = sequence->computed;
}

// Where states of the sequence are kept in files; null: nowhere.
PageStore* Batcher::StatesFor(const Sequence& sequence) const {
  return files_ != nullptr && sequence.request->scope == 0 ? files_->states()
                                                           : nullptr;
}

// Where the states of a prompt are next to be put into a file: behind its last
// whole page, and now and then before.
int64_t Batcher::NextStored(const Sequence& sequence) const {
  const int64_t end = (sequence.prompt - 1) / kPageTokens * kPageTokens;
  if (StatesFor(sequence) == nullptr || end <= sequence.computed) {
    return std::numeric_limits<int64_t>::max();
  }
  return std::min(end,
                  (sequence.computed / kStoredInterval + 1) * kStoredInterval);
}

void Batcher::StoreStates(const Sequence& sequence) {
  if (cache_.position(sequence.slot) != sequence.computed) return;
  const auto pages =
      absl::MakeConstSpan(sequence.tokens).first(sequence.computed);
  PageStore& states = *files_->states();
  states.Write(KeyOfLast(states, pages), sequence.computed / kPageTokens - 1,
               LastPage(pages),
               [&](uint8_t* bytes) { cache_.ReadSlot(sequence.slot, bytes); });
}

// How many of the tokens the longest states in a file stand behind whose keys
// and values are there, or in files, too.
int64_t Batcher::FindStored(const Sequence& sequence) const {
  const PageStore* const store = StatesFor(sequence);
  if (store == nullptr) return 0;
  const auto tokens = absl::MakeConstSpan(sequence.tokens);
  const int64_t in_memory =
      prefix_cache_.TokensThere(sequence.request->scope, tokens);
  PageStore::Key page, states;
  int64_t found = 0;
  for (int64_t end = kPageTokens; end < static_cast<int64_t>(tokens.size());
       end += kPageTokens) {
    const auto own = LastPage(tokens.first(end));
    page = files_->pages().KeyOf(page, own);
    states = store->KeyOf(states, own);
    if (end > in_memory && !files_->pages().Has(page)) break;
    if (store->Has(states)) found = end;
  }
  return found;
}

// Lets a sequence that has just got its slot begin behind so many tokens; false
// where something of them is not what it should be.
absl::StatusOr<bool> Batcher::LoadStates(Sequence* sequence, int64_t stored) {
  const auto tokens = absl::MakeConstSpan(sequence->tokens);
  // And one, as in AttachCheckpoint.
  WEFT_ASSIGN_OR_RETURN(
      int64_t there,
      prefix_cache_.Attach(sequence->slot, sequence->request->scope,
                           tokens.first(stored + 1)));
  WEFT_ASSIGN_OR_RETURN(there, LoadPages(*sequence, there, stored));
  const auto pages = tokens.first(stored);
  PageStore& states = *files_->states();
  const bool read =
      there == stored &&
      states.Read(KeyOfLast(states, pages), stored / kPageTokens - 1,
                  LastPage(pages), [&](const uint8_t* bytes) {
                    cache_.WriteSlot(sequence->slot, bytes, stored);
                  });
  if (!read) {
    WEFT_RETURN_IF_ERROR(prefix_cache_.Release(sequence->slot));
    return false;
  }
  CountHit(sequence, stored);
  AddCheckpoint(sequence);
  return true;
}

void Batcher::CountHit(Sequence* sequence, int64_t tokens) {
  sequence->computed += tokens;
  stats_.prefix_hit_tokens += tokens;
  if (sequence->choice == 0 && sequence->generated == 0 &&
      sequence->once_computed == 0) {
    Usage& usage = sequence->request->usage;
    usage.cached_tokens += tokens;
    usage.processed_tokens = sequence->computed;
  }
}

// Lets others find what is computed from `begin` on.
absl::Status Batcher::AddPages(Sequence* sequence, int64_t begin) {
  const int64_t end = sequence->computed;
  for (int64_t page = begin / kPageTokens; page * kPageTokens < end; ++page) {
    WEFT_RETURN_IF_ERROR(
        prefix_cache_.Add(sequence->slot, sequence->request->scope,
                          absl::MakeConstSpan(sequence->tokens)
                              .first(std::min((page + 1) * kPageTokens, end))));
  }
  if (end / kPageTokens > begin / kPageTokens) {
    StorePages(*sequence, begin / kPageTokens);
  }
  return absl::OkStatus();
}

}  // namespace weft
