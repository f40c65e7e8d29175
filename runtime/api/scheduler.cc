#include "runtime/api/scheduler.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/steady_cond_var.h"
#include "runtime/cache/prompt_files.h"
#include "runtime/generation/batcher.h"
#include "runtime/generation/request_checks.h"
#include "runtime/plan/plan_identity.h"

namespace weft {
namespace {

constexpr size_t kMostIdleClients = 64;

absl::Status CheckOptions(const Engine& engine, int32_t slots,
                          const SchedulerOptions& options) {
  const auto error = [](absl::string_view field, int64_t value,
                        absl::string_view allowed) {
    return absl::InvalidArgumentError(
        absl::StrCat("invalid scheduler option: ", field, ": ", value,
                     ", must be ", allowed));
  };
  if (options.prefill_tokens < 1) {
    return error("prefill_tokens", options.prefill_tokens, "above 0");
  }
  if (options.prefill_tokens_alone < 0) {
    return error("prefill_tokens_alone", options.prefill_tokens_alone,
                 "0 (as many as a step takes) or above");
  }
  if (options.prompt_logprob_rows < 0) {
    return error("prompt_logprob_rows", options.prompt_logprob_rows,
                 "0 or above");
  }
  if (options.queue_limit < 0) {
    return error("queue_limit", options.queue_limit, "0 or above");
  }
  if (options.client_queue_limit < 0) {
    return error("client_queue_limit", options.client_queue_limit,
                 "0 or above");
  }
  if (slots > engine.plan().max_tokens()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "too many sequences: ", slots, ": a step of this plan takes ",
        engine.plan().max_tokens(), " tokens: choose as many at most"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PromptFiles>> OpenFiles(
    Engine& engine, const SchedulerOptions& options) {
  WEFT_RETURN_IF_ERROR(CheckKeepsPrompts(engine, options.cache_bytes));
  if (!options.prefix_cache) {
    return absl::InvalidArgumentError(
        "prompts cannot be kept in files: the prefix cache is switched off");
  }
  PromptFiles::Options files;
  files.folder = options.cache_folder;
  files.limit = options.cache_bytes;
  files.identity = PlanIdentity(engine.plan());
  files.page_bytes = engine.cache().page_bytes();
  files.slot_bytes = engine.cache().slot_bytes();
  files.log = options.log;
  return PromptFiles::Open(files);
}

}  // namespace

class Scheduler::Impl {
 public:
  Impl(std::unique_ptr<Engine> engine, std::unique_ptr<PromptFiles> files,
       const SchedulerOptions& options)
      : engine_(std::move(engine)),
        files_(std::move(files)),
        options_(options),
        vocabulary_size_(
            static_cast<int32_t>(engine_->plan().model.vocabulary_size)),
        end_tokens_(EndTokens(engine_->tokenizer(), vocabulary_size_)),
        batcher_({&engine_->plan(), &engine_->cache(), &engine_->executor(),
                  &engine_->thread_pool(), engine_->guess_rows(), files_.get()},
                 options),
        capacity_(batcher_.capacity()),
        stats_(batcher_.stats()),
        thread_([this] { Loop(); }) {}

  ~Impl() {
    {
      const absl::MutexLock lock(&mutex_);
      draining_ = true;
      stop_ = true;
      work_.Signal();
    }
    thread_.join();
  }

  const Engine& engine() const { return *engine_; }
  int64_t capacity() const { return capacity_; }

  absl::StatusOr<RequestId> Submit(Request request, EventCallback callback);
  bool Cancel(RequestId id);
  int64_t Drain(absl::Duration longest);
  SchedulerStats GetStats() const;
  absl::Status Damage() const {
    const absl::MutexLock lock(&mutex_);
    return damage_;
  }

 private:
  absl::StatusOr<std::unique_ptr<RequestState>> MakeState(
      Request request, EventCallback callback);
  // Counts one more request of this client that waits. Errors:
  // kResourceExhausted, it has too many.
  absl::StatusOr<std::shared_ptr<WaitingCount>> TakePlace(uint64_t client,
                                                          int64_t free_slots)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Loop();

  const std::unique_ptr<Engine> engine_;
  const std::unique_ptr<PromptFiles> files_;  // null: none
  const SchedulerOptions options_;
  const int32_t vocabulary_size_;
  const std::vector<int32_t> end_tokens_;

  std::atomic<bool> told_of_change_{false};

  // Of the scheduler's thread, once it runs.
  Batcher batcher_;

  const int64_t capacity_;
  mutable absl::Mutex mutex_;
  absl::CondVar work_;   // something for the thread to do
  SteadyCondVar ended_;  // requests have ended
  std::vector<std::unique_ptr<RequestState>> submitted_ ABSL_GUARDED_BY(mutex_);
  absl::Status damage_ ABSL_GUARDED_BY(mutex_);
  std::vector<RequestId> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::set<RequestId> open_ ABSL_GUARDED_BY(mutex_);
  // By client; the requests have the counts, too.
  std::map<uint64_t, std::shared_ptr<WaitingCount>> waiting_
      ABSL_GUARDED_BY(mutex_);
  RequestId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  // As the thread left them after its last step.
  int64_t unstarted_ ABSL_GUARDED_BY(mutex_) = 0;
  SchedulerStats stats_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<RequestState>> Scheduler::Impl::MakeState(
    Request request, EventCallback callback) {
  auto state = std::make_unique<RequestState>();
  state->request = std::move(request);
  state->callback = std::move(callback);
  state->submitted = std::chrono::steady_clock::now();
  const Request& asked = state->request;
  state->scope = asked.cache_scope;
  if (asked.adapter_scales.empty()) {
    state->request.adapter_scales = engine_->plan().model.AdapterScales();
  }
  state->unfinished = state->untold = asked.choices;
  state->usage.prompt_tokens = static_cast<int64_t>(asked.prompt_tokens.size());
  for (int i = 0; i < asked.choices; ++i) {
    std::unique_ptr<TokenConstraint> constraint;
    if (asked.constraint != nullptr) {
      constraint = i + 1 < asked.choices ? asked.constraint->Clone()
                                         : std::move(state->request.constraint);
    }
    WEFT_ASSIGN_OR_RETURN(
        TokenChooser chooser,
        TokenChooser::Create(&asked, i, std::move(constraint), end_tokens_,
                             batcher_.scratch()));
    auto sequence =
        std::make_unique<Sequence>(state.get(), i, std::move(chooser),
                                   ChoiceOutput(engine_->tokenizer(), asked));
    state->sequences.push_back(std::move(sequence));
  }
  return state;
}

absl::StatusOr<RequestId> Scheduler::Impl::Submit(Request request,
                                                  EventCallback callback) {
  WEFT_RETURN_IF_ERROR(CheckRequest(request, engine_->plan().model, capacity_));
  if (request.prompt_logprobs >= 0 && options_.prompt_logprob_rows < 1) {
    return absl::InvalidArgumentError(
        "invalid request: prompt_logprobs: this scheduler was made without "
        "rows "
        "for them: see SchedulerOptions::prompt_logprob_rows");
  }
  if (absl::Status s = engine_->CheckFiles(); !s.ok()) {
    if (options_.log && !told_of_change_.exchange(true)) {
      options_.log(std::string(s.message()));
    }
    return s;
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<RequestState> state,
                        MakeState(std::move(request), std::move(callback)));

  const absl::MutexLock lock(&mutex_);
  if (draining_) {
    return absl::UnavailableError(
        "request is refused: the scheduler is shutting down");
  }
  const int64_t waiting = unstarted_ + static_cast<int64_t>(submitted_.size());
  const int64_t free_slots = stats_.slots - stats_.running;
  if (waiting >= options_.queue_limit + free_slots) {
    ++refused_;
    return absl::ResourceExhaustedError(
        absl::StrCat("queue is full: ", waiting, " requests wait, at most ",
                     options_.queue_limit, " may: try again later"));
  }
  const uint64_t client = state->request.client;
  if (client != 0) {
    WEFT_ASSIGN_OR_RETURN(state->waiting, TakePlace(client, free_slots));
  }
  const RequestId id = ++last_id_;
  state->id = id;
  open_.insert(id);
  submitted_.push_back(std::move(state));
  work_.Signal();
  return id;
}

absl::StatusOr<std::shared_ptr<WaitingCount>> Scheduler::Impl::TakePlace(
    uint64_t client, int64_t free_slots) {
  // Clients that wait for nothing are forgotten before there are many.
  if (waiting_.size() >= kMostIdleClients + open_.size()) {
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      it = it->second->load() == 0 ? waiting_.erase(it) : std::next(it);
    }
  }
  std::shared_ptr<WaitingCount>& waiting = waiting_[client];
  if (waiting == nullptr) waiting = std::make_shared<WaitingCount>(0);
  if (*waiting >= options_.client_queue_limit + free_slots) {
    ++refused_;
    return absl::ResourceExhaustedError(
        absl::StrCat("queue is full: ", waiting->load(),
                     " requests of this client wait, "
                     "at most ",
                     options_.client_queue_limit, " may: try again later"));
  }
  ++*waiting;
  return waiting;
}

bool Scheduler::Impl::Cancel(RequestId id) {
  const absl::MutexLock lock(&mutex_);
  if (open_.count(id) == 0) return false;
  cancelled_.push_back(id);
  work_.Signal();
  return true;
}

int64_t Scheduler::Impl::Drain(absl::Duration longest) {
  const SteadyTime until = SteadyTimeIn(longest);
  const absl::MutexLock lock(&mutex_);
  draining_ = true;
  while (!open_.empty()) {
    if (ended_.WaitUntil(&mutex_, until)) break;
  }
  const int64_t left = static_cast<int64_t>(open_.size());
  cancelled_.insert(cancelled_.end(), open_.begin(), open_.end());
  work_.Signal();
  while (!open_.empty()) ended_.Wait(&mutex_);
  return left;
}

SchedulerStats Scheduler::Impl::GetStats() const {
  const absl::MutexLock lock(&mutex_);
  SchedulerStats stats = stats_;
  stats.refused = refused_;
  if (files_ != nullptr) {
    // Written and removed beside, also when nothing runs.
    const PromptFiles::Stats stored = files_->GetStats();
    stats.stored_bytes = stored.bytes;
    stats.pages_loaded = stored.read;
    stats.pages_stored = stored.written;
    stats.pages_damaged = stored.damaged;
  }
  stats.waiting += static_cast<int64_t>(submitted_.size());
  return stats;
}

void Scheduler::Impl::Loop() {
  std::vector<std::unique_ptr<RequestState>> submitted;
  std::vector<RequestId> cancelled, ended;
  while (true) {
    {
      const absl::MutexLock lock(&mutex_);
      for (const RequestId id : ended) open_.erase(id);
      if (!ended.empty()) ended_.SignalAll();
      while (batcher_.idle() && submitted_.empty() && !stop_) {
        cancelled_.clear();
        work_.Wait(&mutex_);
      }
      if (stop_) {
        if (open_.empty()) return;
        cancelled_.assign(open_.begin(), open_.end());
      }
      submitted.swap(submitted_);
      cancelled.swap(cancelled_);
      unstarted_ += static_cast<int64_t>(submitted.size());
    }
    for (auto& request : submitted) batcher_.Add(std::move(request));
    for (const RequestId id : cancelled) batcher_.Cancel(id);
    submitted.clear();
    cancelled.clear();
    ended.clear();
    batcher_.Step();
    {
      const absl::MutexLock lock(&mutex_);
      stats_ = batcher_.stats();
      unstarted_ = batcher_.unstarted();
      damage_ = batcher_.damage();
    }
    batcher_.TellNews(&ended);
  }
}

absl::Status CheckKeepsPrompts(Engine& engine, int64_t cache_bytes) {
  if (!engine.plan().model.generates()) {
    return absl::InvalidArgumentError(
        "prompts of this model cannot be kept in files: it writes no text");
  }
  const int64_t least = PromptFiles::FileBytes(engine.cache().page_bytes(),
                                               engine.cache().slot_bytes());
  if (cache_bytes >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("prompts of this model cannot be kept in files of ",
                   cache_bytes, " bytes together: one page takes ", least,
                   ": allow more, best room for some thousand pages"));
}

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(
    std::unique_ptr<Engine> engine, const SchedulerOptions& options) {
  WEFT_RETURN_IF_ERROR(
      CheckOptions(*engine, engine->cache().pool().slots(), options));
  if (options.proposer != nullptr) {
    // The context, and what is drawn from it.
    WEFT_RETURN_IF_ERROR(options.proposer->Prepare(
        engine->cache().pool().slots(), engine->plan().context() + 1,
        engine->guess_rows()));
  }
  std::unique_ptr<PromptFiles> files;
  if (!options.cache_folder.empty()) {
    WEFT_ASSIGN_OR_RETURN(files, OpenFiles(*engine, options));
  }
  return std::unique_ptr<Scheduler>(new Scheduler(
      std::make_unique<Impl>(std::move(engine), std::move(files), options)));
}

Scheduler::Scheduler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Scheduler::~Scheduler() = default;

const Engine& Scheduler::engine() const { return impl_->engine(); }
int64_t Scheduler::capacity() const { return impl_->capacity(); }

absl::StatusOr<RequestId> Scheduler::Submit(Request request,
                                            EventCallback callback) {
  return impl_->Submit(std::move(request), std::move(callback));
}

bool Scheduler::Cancel(RequestId id) { return impl_->Cancel(id); }

int64_t Scheduler::Drain(absl::Duration longest) {
  return impl_->Drain(longest);
}

SchedulerStats Scheduler::GetStats() const { return impl_->GetStats(); }

absl::Status Scheduler::Damage() const { return impl_->Damage(); }

}  // namespace weft
