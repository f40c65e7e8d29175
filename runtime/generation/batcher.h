// The inside of a Scheduler: forms steps and runs them, on one thread.
//
// Each step: sequences whose request was cancelled or is late end; those that
// wait get slots, oldest first, as long as there are pages for them; every
// running sequence gets its rows (one token, or a share of the step's budget of
// prompt tokens) and pages for them; then the executor runs, and every sequence
// that has all its tokens computed gets another.
//
// A sequence is a list of tokens of which some are computed. So a prompt, a
// sequence that had to give way, and one that found tokens in the prefix cache
// differ only in numbers.
//
// Masks of constraints are made on another thread (mask_maker.h). A sequence
// runs beside that; when its mask is not there in time, its logits are dropped,
// and it sits out steps until the mask is there; where others want its slot, it
// gives it up meanwhile, even if it is the oldest.
//
// Models with states by sequence go on from a checkpoint (checkpoints.h), or
// from states in a file, at the start only; steps end where one is to be made.
// Their rows never run twice, so the last one waits for its mask.
//
// A sequence whose next page, or the rest of whose prompt but the last token,
// an older one is just computing waits for it, so a prompt that many bring at
// the same time runs once.
//
// An encoder's text runs whole in one step, and what comes out is pooled: such
// a step takes the texts whose turn it is as long as there is room. Where the
// vector of one token is that of the text, or a row of the graph is, only that
// is asked for; so it is with decoders that give vectors, whose texts are
// prompts without an answer.
//
// Turns: of those that wait the oldest of all goes first, then whoever has had
// least (fair_share.h). Where all slots are taken, a running sequence that has
// had its turn gives way to one that deserves the slot more; its pages stay in
// the cache while there is room, so it soon goes on.
//
// Guessed tokens (runtime/speculation): while only texts are written, a step
// may run, behind the row of a sequence's last token, those of tokens that are
// guessed to follow. Then the next token is drawn from each row in turn, as if
// it had run alone, for as long as it is the one that was guessed; what the
// rest left in cache and states is taken back. So what is drawn never depends
// on what was guessed. Pages for guesses are taken from none.
//
// Room for pages: when none is free, those that nobody holds are given up;
// after that, the youngest running sequence gives way. The oldest never does,
// and all pages hold at least one whole sequence (capacity), so there is always
// progress.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cache/checkpoints.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/cache/prefix_cache.h"
#include "runtime/cache/prompt_files.h"
#include "runtime/execution/executor.h"
#include "runtime/generation/fair_share.h"
#include "runtime/generation/mask_maker.h"
#include "runtime/generation/nan_logits.h"
#include "runtime/generation/scheduler_options.h"
#include "runtime/generation/scheduler_stats.h"
#include "runtime/generation/sequence.h"
#include "runtime/machine/thread_pool.h"
#include "runtime/plan/plan.h"
#include "runtime/speculation/guess_budget.h"

namespace weft {

// What steps run on. All of it outlives the Batcher, which alone uses it.
struct BatcherParts {
  const Plan* plan;
  KvCache* cache;
  Executor* executor;
  ThreadPool* threads;
  int64_t guess_rows = 0;        // Engine::guess_rows
  PromptFiles* files = nullptr;  // null: none
};

// Not thread-safe.
class Batcher {
 public:
  Batcher(const BatcherParts& parts, const SchedulerOptions& options);

  // For Sequences that are to be added; not of this thread alone.
  const ChooserScratch& scratch() const { return scratch_.front(); }

  // The most tokens of a sequence.
  int64_t capacity() const { return capacity_; }

  // At the end of the queue. Requires an id above all before.
  void Add(std::unique_ptr<RequestState> request);

  // Ends a request before the next step; nothing if there is none.
  void Cancel(RequestId id);

  // Runs one step if there is anything to run.
  void Step();

  // Calls the callbacks with what has happened since, and forgets requests that
  // have ended: their ids are added to `ended`.
  void TellNews(std::vector<RequestId>* ended);

  bool idle() const { return requests_.empty(); }
  // Requests that have not begun to run.
  int64_t unstarted() const { return unstarted_; }
  // As of the last step.
  const SchedulerStats& stats() const { return stats_; }
  // Of the plan's weights: every step fails.
  const absl::Status& damage() const { return damage_; }

 private:
  uint64_t AdapterScope(const RequestState& request);
  void NoteStarted(RequestState* request);
  void EndLateRequests();
  void ReplaceThoseWithoutMask();
  void ChangeTurns();
  Sequence* NextWaiting() const;
  void Admit();
  void TakePrompt(Sequence* sequence) const;
  bool HasRoomFor(const Sequence& sequence,
                  const Sequence* without = nullptr) const;
  bool FitsStep(const Sequence& sequence) const;
  void Start(Sequence* sequence);
  void FindPages();
  absl::Status AttachPages(size_t index);
  absl::StatusOr<int64_t> LoadPages(const Sequence& sequence, int64_t begin,
                                    int64_t most);
  void CheckPages(PageStore::Key key, absl::Span<const int32_t> tokens,
                  int64_t begin, int64_t most);
  void StorePages(const Sequence& sequence, int64_t first_page);
  int64_t FindCheckpoint(const Sequence& sequence,
                         absl::Span<const int32_t> tokens) const;
  absl::Status AttachCheckpoint(Sequence* sequence);
  int64_t RowsToCheckpoint(const Sequence& sequence, int64_t rows) const;
  int64_t NextCheckpoint(const Sequence& sequence) const;
  void AddCheckpoint(Sequence* sequence);
  PageStore* StatesFor(const Sequence& sequence) const;
  int64_t NextStored(const Sequence& sequence) const;
  void StoreStates(const Sequence& sequence);
  int64_t FindStored(const Sequence& sequence) const;
  absl::StatusOr<bool> LoadStates(Sequence* sequence, int64_t stored);
  void CountHit(Sequence* sequence, int64_t tokens);
  void ShareRows();
  void LeaveOneAlone();
  bool WaitsForOlder(size_t index) const;
  void TakePages();
  void TakePagesFor(Sequence* sequence);
  void GiveWay(Sequence* sequence);
  void GiveSlotBack(Sequence* sequence);
  absl::Status RunRows();
  void DropLateMasks();
  int64_t PromptRows(const Sequence& sequence, int64_t end) const;
  void AddRows(Sequence* sequence);
  absl::Status CountRows(Sequence* sequence);
  absl::Status AddPages(Sequence* sequence, int64_t begin);
  void UpdateGauges();

  void GuessTokens();
  void FindGuesses(int64_t rows, int64_t room);
  void ProposeWhatIsWorthIt(int64_t room);
  double Propose(Sequence* sequence, int64_t most);
  int64_t MostGuesses(const Sequence& sequence, int64_t most) const;
  void GuessForced(Sequence* sequence, int64_t most);
  bool IsAllowed(Sequence* sequence, int32_t token);
  int64_t ReserveForGuesses(Sequence* sequence, int64_t guesses);
  void TakePagesForGuesses(Sequence* sequence);
  void ChooseAcceptedTokens();
  bool Accepts(Sequence* sequence);
  void TakeGuesses();
  absl::Status Settle(Sequence* sequence);

  // `status` is that of RunRows.
  void TakeTokens(const absl::Status& status);
  void TakeError(const absl::Status& status);
  void ChooseTokens();
  void ChooseToken(Sequence* sequence, int64_t row, ChooserScratch* scratch);
  void ReadPromptRow(size_t index);
  void TakePromptRows();
  void PoolVectors();
  void TakeToken(Sequence* sequence);
  void AddNews(Sequence* sequence);
  void TakeVector(Sequence* sequence);
  bool Shift(Sequence* sequence);
  void WarnOfNans(const NanLogits& nans);
  absl::Status CheckLogits(const Sequence& sequence, const NanLogits& nans);
  absl::Status WithAdapters(const Sequence& sequence, absl::Status error) const;
  void Log(const std::string& line) const;
  void CountToken(Sequence* sequence);
  void Finish(Sequence* sequence, FinishReason reason,
              absl::Status status = absl::OkStatus());
  void FinishAll(RequestState* request, FinishReason reason);

  const Plan& plan_;
  KvCache& cache_;
  Executor& executor_;
  ThreadPool& threads_;
  const SchedulerOptions options_;
  const bool encoder_;
  const bool embeds_;         // gives vectors in place of tokens
  const int64_t columns_;     // of an output row
  const int64_t max_tokens_;  // of a step
  const int64_t capacity_;
  const int64_t guess_rows_;  // of a step
  PromptFiles* const files_;
  PrefixCache prefix_cache_;
  Checkpoints checkpoints_;
  // The scopes of texts with adapters, by the requests' scopes and scales.
  std::map<std::pair<uint64_t, std::vector<float>>, uint64_t> adapter_scopes_;
  uint64_t last_adapter_scope_;
  FairShare shares_;

  std::vector<std::unique_ptr<RequestState>> requests_;
  std::vector<Sequence*> waiting_;  // oldest first
  std::vector<Sequence*> running_;  // oldest first
  std::vector<Sequence*> news_;     // with events that are not told yet
  std::vector<int32_t> free_slots_;
  int64_t unstarted_ = 0;
  SteadyTime rows_end_, step_end_;  // of the last step
  bool warned_of_nans_ = false;
  bool worked_ = false;  // a step has
  absl::Status damage_;
  SchedulerStats stats_;

  std::vector<ChooserScratch> scratch_;  // of those that choose side by side
  MaskMaker mask_maker_;

  // Of the step; reused, so that a step allocates nothing.
  std::vector<int64_t> left_, share_;
  std::vector<int32_t> ids_, positions_, slots_, output_rows_;
  std::vector<float> adapter_scales_;  // [ids_][adapters]
  // By output row; null where the mask is not there.
  std::vector<Sequence*> choosing_;
  std::vector<float> logits_;  // [rows that are wanted][columns]
  // Rows whose next token is one of the prompt, behind those of choosing_.
  struct PromptRow {
    Sequence* sequence = nullptr;
    int32_t row = 0;  // of the step
    GeneratedToken token;
    absl::Status status;
  };
  std::vector<PromptRow> prompt_rows_;

  StepCosts step_costs_;
  double guess_seconds_ = 0;  // of a guess, where they take time; an average
  std::vector<GuessOffer> offers_;  // of the step, as running_
  bool executed_ = false;  // the step's rows, whatever came behind that
  // Of the step: whether it has guesses, and whose last one was right.
  bool guesses_ = false;
  std::vector<Sequence*> accepting_;
  std::vector<uint64_t> mask_words_;
};

}  // namespace weft
