// Which sequences run, and with which rows. What they find computed and leave
// for others is in batcher_pages.cc, what becomes of the logits in
// batcher_tokens.cc, all about guessed tokens in batcher_guesses.cc.
#include "runtime/generation/batcher.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "ops/kernels/kernel.h"
#include "runtime/generation/step_budget.h"

namespace weft {
namespace {

bool OlderPointer(const Sequence* a, const Sequence* b) {
  return Older(*a, *b);
}

void InsertByAge(std::vector<Sequence*>* list, Sequence* sequence) {
  list->insert(
      std::lower_bound(list->begin(), list->end(), sequence, OlderPointer),
      sequence);
}

// What a step waits for masks at most when nobody else has anything to do; then
// it looks for news.
constexpr absl::Duration kMaskWait = absl::Milliseconds(2);

// How long a sequence may hold a slot that others want while its mask is made.
constexpr std::chrono::milliseconds kMaskPatience(20);

// One that no other request has.
uint64_t OwnScope(RequestId id) {
  return (uint64_t{1} << 63) + static_cast<uint64_t>(id);
}

// Where scopes of texts with adapters begin; random ones of clients lie
// anywhere, those of requests above.
constexpr uint64_t kAdapterScopes = uint64_t{1} << 62;
// So many are remembered; then pages of all but texts that run are forgotten by
// being found no more.
constexpr size_t kMostAdapterScopes = 1024;

// With a slot or without, its next token cannot be chosen yet.
bool LacksMask(const Sequence& sequence) {
  return sequence.mask_asked && !sequence.mask.ready();
}

}  // namespace

Batcher::Batcher(const BatcherParts& parts, const SchedulerOptions& options)
    : plan_(*parts.plan),
      cache_(*parts.cache),
      executor_(*parts.executor),
      threads_(*parts.threads),
      options_(options),
      encoder_(plan_.model.encoder),
      embeds_(!plan_.model.generates()),
      columns_(plan_.model.output_columns()),
      max_tokens_(plan_.max_tokens()),
      capacity_(std::min({plan_.context(),
                          int64_t{cache_.pool().pages()} * kPageTokens,
                          encoder_ ? max_tokens_ : plan_.context()})),
      guess_rows_(parts.guess_rows),
      files_(options.prefix_cache ? parts.files : nullptr),
      prefix_cache_(&cache_),
      checkpoints_(&cache_, capacity_),
      last_adapter_scope_(kAdapterScopes) {
  const int32_t slots = cache_.pool().slots();
  for (int i = 0; i < std::min(threads_.threads(), embeds_ ? 1 : slots); ++i) {
    scratch_.emplace_back(static_cast<int32_t>(plan_.model.vocabulary_size));
  }
  for (int32_t slot = slots - 1; slot >= 0; --slot) {
    free_slots_.push_back(slot);
  }
  running_.reserve(slots);
  news_.reserve(slots);
  left_.reserve(slots);
  share_.reserve(slots);
  ids_.reserve(max_tokens_);
  positions_.reserve(max_tokens_);
  slots_.reserve(max_tokens_);
  adapter_scales_.reserve(max_tokens_ * plan_.model.adapters.size());
  const int64_t wanted =
      encoder_ ? max_tokens_
               : slots + options_.prompt_logprob_rows + guess_rows_;
  prompt_rows_.reserve(options_.prompt_logprob_rows);
  output_rows_.reserve(wanted);
  choosing_.reserve(slots);
  accepting_.reserve(slots);
  offers_.reserve(slots);
  mask_words_.resize(MaskWords(plan_.model.vocabulary_size));
  logits_.resize(wanted * columns_);
  stats_.slots = slots;
  stats_.pages = cache_.pool().pages();
  for (const KvState& state : cache_.states()) {
    if (state.page_table != nullptr) stats_.page_bytes += state.page_bytes;
  }
  UpdateGauges();
}

void Batcher::Add(std::unique_ptr<RequestState> request) {
  ++stats_.requests;
  ++unstarted_;
  stats_.prompt_tokens +=
      static_cast<int64_t>(request->request.prompt_tokens.size());
  if (!options_.prefix_cache || request->request.prompt_logprobs >= 0) {
    request->scope = OwnScope(request->id);
  } else {
    request->scope = AdapterScope(*request);
  }
  request->share =
      shares_.Join(request->request.client, request->request.task, request->id,
                   static_cast<int64_t>(request->sequences.size()));
  for (const auto& sequence : request->sequences) {
    waiting_.push_back(sequence.get());
  }
  requests_.push_back(std::move(request));
  RequestState* const added = requests_.back().get();
  if (added->request.max_tokens == 0 && !embeds_ &&
      added->request.prompt_logprobs < 0) {
    FinishAll(added, FinishReason::kLength);
  }
}

// Keys and values depend on adapters too, so texts with others share no pages,
// and those without any go on as if there were none. A number is never given
// for anything else.
uint64_t Batcher::AdapterScope(const RequestState& request) {
  std::vector<float> scales = request.request.adapter_scales;
  bool any = false;
  for (float& scale : scales) {
    if (scale == 0) scale = 0;  // -0 adds as little
    any = any || scale != 0;
  }
  if (!any) return request.scope;
  if (adapter_scopes_.size() >= kMostAdapterScopes) adapter_scopes_.clear();
  const auto [it, added] = adapter_scopes_.emplace(
      std::make_pair(request.scope, std::move(scales)), 0);
  if (added) it->second = ++last_adapter_scope_;
  return it->second;
}

void Batcher::Cancel(RequestId id) {
  for (const auto& request : requests_) {
    if (request->id == id) FinishAll(request.get(), FinishReason::kCancelled);
  }
}

void Batcher::Step() {
  EndLateRequests();
  ReplaceThoseWithoutMask();
  ChangeTurns();
  Admit();
  if (!encoder_) FindPages();
  ShareRows();
  LeaveOneAlone();
  TakePages();
  const bool any =
      std::any_of(running_.begin(), running_.end(),
                  [](const Sequence* sequence) { return sequence->rows > 0; });
  // What waits without a slot waits for a mask, too, when nobody runs.
  if (!any && !requests_.empty()) mask_maker_.Wait(kMaskWait);
  if (any) {
    const SteadyTime start = std::chrono::steady_clock::now();
    GuessTokens();
    const SteadyTime guessed = std::chrono::steady_clock::now();
    const absl::Status status = RunRows();
    if (status.ok()) embeds_ ? PoolVectors() : ChooseTokens();
    step_end_ = std::chrono::steady_clock::now();
    // Weights are compared in the first step that reads them: when a step has
    // worked, it is not them.
    worked_ |= status.ok();
    if (!worked_ && absl::IsDataLoss(status)) damage_ = status;
    TakeTokens(status);
    TakeGuesses();
    const SteadyTime end = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(end - start).count();
    ++stats_.steps;
    stats_.busy_seconds += seconds;
    stats_.step_time.Add(seconds);
    // Of texts alone: rows without logits cost less.
    if (status.ok() && ids_.size() == output_rows_.size()) {
      step_costs_.Add(static_cast<int64_t>(ids_.size()),
                      std::chrono::duration<double>(end - guessed).count());
    }
  }
  UpdateGauges();
}

void Batcher::NoteStarted(RequestState* request) {
  request->started = true;
  --unstarted_;
  if (request->waiting != nullptr) --*request->waiting;
}

void Batcher::EndLateRequests() {
  const SteadyTime now = std::chrono::steady_clock::now();
  for (const auto& request : requests_) {
    if (request->request.deadline < now) {
      FinishAll(request.get(), FinishReason::kDeadline);
    }
  }
}

// Gives the slots of those that do nothing but wait for a mask to others that
// can go on. They come back when the mask is there, and their pages may still
// be there, too.
void Batcher::ReplaceThoseWithoutMask() {
  if (!free_slots_.empty() || waiting_.empty()) return;
  const SteadyTime now = std::chrono::steady_clock::now();
  for (size_t i = running_.size(); i-- > 0;) {
    Sequence* const running = running_[i];
    if (!LacksMask(*running) || Left(*running) > 1) {
      running->without_mask_since = SteadyTime::max();
      continue;
    }
    running->without_mask_since = std::min(running->without_mask_since, now);
    if (now - running->without_mask_since < kMaskPatience) continue;
    const Sequence* next = NextWaiting();
    if (next == nullptr) return;
    if (!HasRoomFor(*next, running)) continue;
    GiveWay(running);
    Admit();
  }
}

// Gives the slots of those that have had their turn to those that deserve them
// more; the oldest keeps its own.
void Batcher::ChangeTurns() {
  // Now and then is often enough, and looking at a long queue takes time.
  if (stats_.steps % 8 != 0 || !free_slots_.empty() || waiting_.empty()) return;
  const Sequence* next = NextWaiting();
  for (size_t i = running_.size() - 1; i > 0 && next != nullptr; --i) {
    Sequence* const running = running_[i];
    // What it costs at most, to run all its tokens again, must be worth it.
    const int64_t turn =
        std::max(FairShare::kTurnTokens,
                 static_cast<int64_t>(running->tokens.size()) / 8);
    if (running->turn < turn ||
        !FairShare::MayReplace(next->request->share, running->request->share) ||
        !HasRoomFor(*next, running)) {
      continue;
    }
    GiveWay(running);
    Admit();
    next = NextWaiting();
  }
}

// Whose turn it is; null: nobody's now.
Sequence* Batcher::NextWaiting() const {
  Sequence* next = nullptr;
  for (Sequence* sequence : waiting_) {
    // The other choices find the pages of the prompt when the first has run it.
    if (sequence->choice > 0 && !sequence->request->prompt_done) continue;
    if (LacksMask(*sequence)) continue;
    // Who is older than all that run goes first, or it might wait for ever.
    if (next == nullptr &&
        (running_.empty() || Older(*sequence, *running_.front()))) {
      return sequence;
    }
    if (next == nullptr ||
        FairShare::Precedes(sequence->request->share, next->request->share)) {
      next = sequence;
    }
  }
  return next;
}

void Batcher::Admit() {
  while (!free_slots_.empty()) {
    Sequence* const sequence = NextWaiting();
    // Nobody overtakes, or a long prompt might wait for ever.
    if (sequence == nullptr || !HasRoomFor(*sequence)) return;
    TakePrompt(sequence);
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), sequence));
    Start(sequence);
  }
}

// Only now, so that what waits takes little memory; and room for the text, so
// that steps allocate nothing.
void Batcher::TakePrompt(Sequence* sequence) const {
  const Request& request = sequence->request->request;
  if (sequence->tokens.empty()) {
    sequence->prompt = static_cast<int64_t>(request.prompt_tokens.size());
  }
  // All that a context holds, and one that was drawn from it.
  int64_t most = capacity_ + 1;
  if (embeds_) {
    most = sequence->prompt;
  } else if (request.max_tokens >= 0 &&
             request.max_tokens < most - sequence->prompt) {
    most = sequence->prompt + request.max_tokens;
  }
  sequence->tokens.reserve(most);
  if (sequence->tokens.empty()) sequence->tokens = request.prompt_tokens;
}

bool Batcher::FitsStep(const Sequence& sequence) const {
  if (!encoder_) return true;
  size_t tokens = sequence.request->request.prompt_tokens.size();
  for (const Sequence* running : running_) tokens += running->tokens.size();
  return static_cast<int64_t>(tokens) <= max_tokens_;
}

// Whether there are pages for it, beside those that run, but for `without`.
bool Batcher::HasRoomFor(const Sequence& sequence,
                         const Sequence* without) const {
  if (running_.empty()) return true;
  if (!FitsStep(sequence)) return false;
  const PagePool& pool = cache_.pool();
  const std::vector<int32_t>& tokens =
      sequence.tokens.empty() ? sequence.request->request.prompt_tokens
                              : sequence.tokens;
  const uint64_t scope = sequence.request->scope;
  PrefixCache::Prefix prefix;
  if (!cache_.has_slots()) {
    prefix = prefix_cache_.Find(scope, tokens);
  } else if (const int64_t found = FindCheckpoint(sequence, tokens)) {
    prefix =
        prefix_cache_.Find(scope, absl::MakeConstSpan(tokens).first(found + 1));
  }
  int64_t available =
      int64_t{pool.free_pages()} + pool.idle_pages() - prefix.idle;
  int64_t wanted =
      PagesForTokens(static_cast<int64_t>(tokens.size()) + 1) - prefix.pages;
  // Those that run have not all pages of their prompts yet; and soon one more
  // each, or what is let in now gives way at once.
  for (const Sequence* running : running_) {
    if (running == without) {
      available += pool.held_pages(running->slot);
      continue;
    }
    wanted += PagesForTokens(static_cast<int64_t>(running->tokens.size())) -
              pool.held_pages(running->slot) + 1;
  }
  return wanted <= available;
}

void Batcher::Start(Sequence* sequence) {
  RequestState* const request = sequence->request;
  sequence->slot = free_slots_.back();
  free_slots_.pop_back();
  sequence->computed = 0;
  sequence->checkpoint = 0;
  sequence->turn = 0;
  sequence->without_mask_since = SteadyTime::max();
  FairShare::Started(request->share);
  if (options_.proposer != nullptr)
    options_.proposer->Begin(sequence->slot, request->scope);
  sequence->guesses.reserve(guess_rows_);
  InsertByAge(&running_, sequence);
  if (sequence->chooser.constraint() != nullptr && !sequence->mask_asked) {
    sequence->mask_asked = true;
    mask_maker_.Add(&sequence->mask);
  }
  if (request->started) return;
  NoteStarted(request);
  request->usage.queue_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                    request->submitted)
          .count();
  stats_.queue_time.Add(request->usage.queue_seconds);
}

// Whether an older sequence, which runs, is computing what this one needs next:
// the same tokens up to the end of its next page, or up to its last token.
bool Batcher::WaitsForOlder(size_t index) const {
  const Sequence& sequence = *running_[index];
  // It could not go on from there.
  if (cache_.has_slots()) return false;
  // With a page of its own that is begun, it could not take another.
  if (sequence.computed % kPageTokens != 0) return false;
  const int64_t end =
      std::min(sequence.computed + kPageTokens,
               static_cast<int64_t>(sequence.tokens.size()) - 1);
  for (size_t i = 0; i < index; ++i) {
    const Sequence& older = *running_[i];
    if (older.request->scope == sequence.request->scope &&
        older.computed < end && older.computed >= sequence.computed &&
        static_cast<int64_t>(older.tokens.size()) >= end &&
        std::equal(sequence.tokens.begin(), sequence.tokens.begin() + end,
                   older.tokens.begin())) {
      return true;
    }
  }
  return false;
}

void Batcher::ShareRows() {
  if (encoder_) {
    for (Sequence* sequence : running_) sequence->rows = Left(*sequence);
    return;
  }
  left_.clear();
  int64_t single = 0;
  bool writing = false;
  for (size_t i = 0; i < running_.size(); ++i) {
    const int64_t left = Left(*running_[i]);
    left_.push_back(left > 1 && !WaitsForOlder(i)
                        ? RowsToCheckpoint(*running_[i], left)
                        : 0);
    single += left == 1;
    writing = writing || (left == 1 && running_[i]->generated > 0);
  }
  int64_t budget =
      writing ? options_.prefill_tokens : options_.prefill_tokens_alone;
  if (budget == 0) budget = max_tokens_;
  budget = std::min(budget, max_tokens_ - single);
  share_.resize(left_.size());
  ShareBudget(left_, budget, absl::MakeSpan(share_));
  int64_t prompt_rows = options_.prompt_logprob_rows;
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    sequence.rows = Left(sequence) != 1 ? share_[i] : 1;
    // What is too much for this step waits for the next.
    const int64_t computed = sequence.computed;
    const int64_t rows = PromptRows(sequence, computed + sequence.rows);
    if (rows > prompt_rows) {
      sequence.rows =
          std::max(computed, sequence.told_prompt - 1) + prompt_rows - computed;
    }
    prompt_rows -= PromptRows(sequence, computed + sequence.rows);
    // States by sequence cannot go back, so there the last row runs but once.
    const bool sits_out =
        cache_.has_slots() || (sequence.late_mask && Left(sequence) == 1);
    if (sits_out && !sequence.mask.ready() && sequence.rows == Left(sequence)) {
      --sequence.rows;
    }
  }
}

// Where a step ended in an error, those that were in it run one by one, oldest
// first, until it is known whose it is. What runs alone has the same bits.
void Batcher::LeaveOneAlone() {
  // One may still wait for what an older one computes, or for a mask.
  const auto alone = std::find_if(
      running_.begin(), running_.end(), [](const Sequence* sequence) {
        return RunsAlone(*sequence) && sequence->rows > 0;
      });
  if (alone == running_.end()) return;
  for (Sequence* sequence : running_) {
    if (sequence != *alone) sequence->rows = 0;
  }
}

void Batcher::TakePages() {
  size_t i = 0;
  while (i < running_.size()) {
    Sequence* const sequence = running_[i];
    TakePagesFor(sequence);
    // It may have given way itself.
    if (i < running_.size() && running_[i] == sequence) ++i;
  }
}

void Batcher::TakePagesFor(Sequence* sequence) {
  const PagePool& pool = cache_.pool();
  const int64_t end = sequence->computed + sequence->rows;
  const int64_t more = PagesForTokens(end) - pool.held_pages(sequence->slot);
  prefix_cache_.MakeFree(more);
  while (pool.free_pages() < more) {
    Sequence* const youngest = running_.back();
    GiveWay(youngest);
    if (youngest == sequence) return;
    prefix_cache_.MakeFree(more);
  }
  absl::Status status = cache_.Reserve(sequence->slot, end);
  if (!status.ok()) Finish(sequence, FinishReason::kError, std::move(status));
}

void Batcher::GiveWay(Sequence* sequence) {
  sequence->once_computed =
      std::max(sequence->once_computed, sequence->computed);
  GiveSlotBack(sequence);
  sequence->tokens.shrink_to_fit();
  InsertByAge(&waiting_, sequence);
  ++stats_.preemptions;
  ++sequence->request->usage.preemptions;
}

void Batcher::GiveSlotBack(Sequence* sequence) {
  Settle(sequence).IgnoreError();  // what cannot go back is given up here
  if (sequence->computed >= Checkpoints::kLeast) AddCheckpoint(sequence);
  FairShare::Stopped(sequence->request->share);
  prefix_cache_.Release(sequence->slot).IgnoreError();
  free_slots_.push_back(sequence->slot);
  running_.erase(std::find(running_.begin(), running_.end(), sequence));
  sequence->slot = -1;
}

absl::Status Batcher::RunRows() {
  executed_ = false;
  ids_.clear();
  positions_.clear();
  slots_.clear();
  adapter_scales_.clear();
  output_rows_.clear();
  choosing_.clear();
  prompt_rows_.clear();
  for (Sequence* sequence : running_) AddRows(sequence);
  for (const PromptRow& row : prompt_rows_) output_rows_.push_back(row.row);
  if (guesses_) {
    for (Sequence* sequence : running_) {
      sequence->first_guess_row = static_cast<int64_t>(output_rows_.size());
      for (size_t i = 1; i <= sequence->guesses.size(); ++i) {
        output_rows_.push_back(static_cast<int32_t>(sequence->last_row + i));
      }
    }
  }
  // A step wants at least one.
  if (output_rows_.empty()) {
    output_rows_.push_back(static_cast<int32_t>(ids_.size()) - 1);
  }
  const Batch batch = {ids_,         positions_,     slots_,
                       output_rows_, logits_.data(), adapter_scales_};
  WEFT_RETURN_IF_ERROR(executor_.Run(batch));
  executed_ = true;
  if (options_.proposer != nullptr) {
    WEFT_RETURN_IF_ERROR(
        options_.proposer->Follow(batch, executor_.hidden_rows()));
  }
  rows_end_ = std::chrono::steady_clock::now();
  DropLateMasks();
  for (Sequence* sequence : running_) {
    if (sequence->rows == 0) continue;
    WEFT_RETURN_IF_ERROR(CountRows(sequence));
  }
  return absl::OkStatus();
}

// The last row of those whose mask is not there runs again when it is: what it
// writes to the cache are the same bits. Nobody waits but those who would run
// for nothing.
void Batcher::DropLateMasks() {
  const auto is_late = [](const Sequence* sequence) {
    return !sequence->mask.ready();
  };
  if (!choosing_.empty() && choosing_.size() == running_.size() &&
      std::all_of(choosing_.begin(), choosing_.end(), is_late)) {
    mask_maker_.Wait(kMaskWait);
  }
  mask_maker_.SetShared(requests_.size() > 1);
  for (Sequence*& sequence : choosing_) {
    sequence->late_mask = is_late(sequence);
    if (!sequence->late_mask) continue;
    --sequence->rows;
    sequence = nullptr;
  }
}

// How many of the sequence's next rows, up to position `end`, tell of a token
// of the prompt that is to be told. They are the last ones but the prompt's
// last.
int64_t Batcher::PromptRows(const Sequence& sequence, int64_t end) const {
  if (sequence.request->request.prompt_logprobs < 0 || sequence.choice > 0) {
    return 0;
  }
  const int64_t first = std::max(sequence.computed, sequence.told_prompt - 1);
  return std::max<int64_t>(0, std::min(end, sequence.prompt - 1) - first);
}

// Those of this step, and which of their results are wanted: of a text the last
// one's, of an encoder's the one that is the text's, or all.
void Batcher::AddRows(Sequence* sequence) {
  const bool whole = sequence->rows > 0 && sequence->rows == Left(*sequence);
  const int64_t last =
      std::min(sequence->computed + sequence->rows, sequence->prompt - 1);
  const int64_t told =
      embeds_ ? 0 : PromptRows(*sequence, sequence->computed + sequence->rows);
  const int64_t wanted =
      encoder_ ? plan_.model.RowOfText(sequence->rows) : sequence->rows - 1;
  for (int64_t i = 0; i < sequence->rows; ++i) {
    const int64_t position = sequence->computed + i;
    if (position < last && position >= last - told) {
      PromptRow row;
      row.sequence = sequence;
      row.row = static_cast<int32_t>(ids_.size());
      row.token.id = sequence->tokens[position + 1];
      prompt_rows_.push_back(std::move(row));
    }
    if (whole && (wanted < 0 || i == wanted)) {
      output_rows_.push_back(static_cast<int32_t>(ids_.size()));
    }
    ids_.push_back(sequence->tokens[position]);
    positions_.push_back(static_cast<int32_t>(position));
    slots_.push_back(sequence->slot);
  }
  if (whole) choosing_.push_back(sequence);
  sequence->last_row = static_cast<int64_t>(ids_.size()) - 1;
  for (const int32_t guess : sequence->guesses) {
    ids_.push_back(guess);
    positions_.push_back(positions_.back() + 1);
    slots_.push_back(sequence->slot);
  }
  const std::vector<float>& scales = sequence->request->request.adapter_scales;
  const size_t rows = sequence->rows + sequence->guesses.size();
  for (size_t i = 0; i < rows; ++i) {
    adapter_scales_.insert(adapter_scales_.end(), scales.begin(), scales.end());
  }
}

// The rows are computed now: counts them, and lets others find them in their
// pages.
absl::Status Batcher::CountRows(Sequence* sequence) {
  const int64_t begin = sequence->computed;
  const int64_t end = begin + sequence->rows;
  const int64_t prompt = sequence->prompt;
  RequestState* const request = sequence->request;
  const int64_t again = std::clamp(sequence->once_computed, begin, end);
  stats_.recomputed_tokens += again - begin;
  stats_.prefill_tokens += std::clamp(prompt, again, end) - again;
  const bool at_checkpoint =
      checkpoints_.any() && end > begin && end == NextCheckpoint(*sequence);
  const bool at_stored = end > begin && end == NextStored(*sequence);
  sequence->computed = end;
  sequence->turn += end - begin;
  FairShare::Served(request->share, end - begin);
  if (sequence->choice == 0 && !request->prompt_done) {
    request->usage.processed_tokens = std::min(end, prompt);
    if (request->request.tell_progress && end < prompt && end > begin) {
      AddNews(sequence);
    }
  }
  if (sequence->choice == 0 && end >= prompt && !request->prompt_done) {
    request->prompt_done = true;
    request->usage.prompt_seconds =
        std::chrono::duration<double>(rows_end_ - request->submitted).count();
  }
  // With guesses, only what is left of them in the end (Settle).
  if (encoder_ || !sequence->guesses.empty()) return absl::OkStatus();
  if (at_checkpoint) AddCheckpoint(sequence);
  if (at_stored) StoreStates(*sequence);
  return AddPages(sequence, begin);
}

void Batcher::UpdateGauges() {
  const PagePool& pool = cache_.pool();
  stats_.waiting = static_cast<int64_t>(waiting_.size());
  stats_.running = static_cast<int64_t>(running_.size());
  stats_.pages_free = pool.free_pages();
  stats_.pages_cached = pool.idle_pages();
  stats_.pages_used = stats_.pages - stats_.pages_free - stats_.pages_cached;
}

}  // namespace weft
