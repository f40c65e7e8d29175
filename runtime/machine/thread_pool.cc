#include "runtime/machine/thread_pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

constexpr int kMaxThreads = 1024;

// Ranges per thread. More would share the work out more evenly, but a range is
// also the stretch of weights that one core streams through.
constexpr int kRangesPerThread = 4;

// How long a worker waits awake for the next loop. Sampling and printing a
// token come in between.
constexpr int64_t kWorkerSpin = 500'000;  // nanoseconds

// How long the caller waits awake for the others' last ranges: this, and half
// of what it took itself. A range is a quarter of that at most.
constexpr int64_t kCallerSpin = 50'000;

// How long the caller works alone after it was held up: this, doubled as long
// as it happens again soon, up to the most.
constexpr int64_t kAloneLeast = 2'000'000;
constexpr int64_t kAloneMost = 128'000'000;

// The caller has lost its core when it ran for less than three quarters of a
// window of loops without a pause.
constexpr int64_t kWindow = 4'000'000;
constexpr int64_t kPause = 200'000;

constexpr uint32_t kInside = (1u << 11) - 1;
constexpr uint32_t kClosed = 1u << 11;
constexpr uint32_t kNumber = ~(kInside | kClosed);

absl::Status PoolError(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot make threads: ", where, ": ", what));
}

// The current thread's CPUs. Best effort: a CPU may have gone offline since it
// was checked, and then the scheduler's choice is right.
void SetCpus(const std::vector<int>& cpus) {
  const int count = *std::max_element(cpus.begin(), cpus.end()) + 1;
  cpu_set_t* mask = CPU_ALLOC(count);
  if (mask == nullptr) return;
  const size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, mask);
  for (const int cpu : cpus) CPU_SET_S(cpu, bytes, mask);
  sched_setaffinity(0, bytes, mask);
  CPU_FREE(mask);
}

int64_t Read(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}
int64_t Now() { return Read(CLOCK_MONOTONIC); }
int64_t ThreadTime() { return Read(CLOCK_THREAD_CPUTIME_ID); }

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits awake until done() or the time is over; false then.
template <typename Done>
bool Spin(int64_t until, Done done) {
  for (;;) {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      Pause();
    }
    if (Now() > until) return done();
  }
}

static_assert(sizeof(std::atomic<uint32_t>) == 4, "futexes are 32-bit words");

// Sleeps while the word has this value (futex(2)).
void Sleep(std::atomic<uint32_t>* word, uint32_t value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void WakeAll(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ThreadPool>> ThreadPool::Create(
    int threads, std::vector<int> affinity) {
  if (threads < 1 || threads > kMaxThreads) {
    return PoolError("number of threads",
                     absl::StrCat(threads, ", must be 1 to ", kMaxThreads));
  }
  if (!affinity.empty()) {
    if (affinity.size() < static_cast<size_t>(threads)) {
      return PoolError("affinity",
                       absl::StrCat(affinity.size(), " CPUs for ", threads,
                                    " threads, name one for each"));
    }
    const std::vector<int> allowed = AllowedCpus();
    for (const int cpu : affinity) {
      if (!std::count(allowed.begin(), allowed.end(), cpu)) {
        return PoolError(
            "affinity",
            absl::StrCat("CPU ", cpu, " is not one this process may use"));
      }
    }
  }
  std::unique_ptr<ThreadPool> pool(
      new ThreadPool(threads, std::move(affinity)));
  try {
    for (int thread = 1; thread < threads; ++thread) {
      pool->workers_.emplace_back(
          [p = pool.get(), thread] { p->Work(thread); });
    }
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot make threads: the system gave ", pool->workers_.size() + 1,
        " of ", threads, ": choose less --threads"));
  }
  return pool;
}

ThreadPool::ThreadPool(int threads, std::vector<int> affinity)
    : threads_(threads),
      affinity_(std::move(affinity)),
      shares_(new Share[threads]),
      state_(kClosed) {}

ThreadPool::~ThreadPool() {
  stop_ = true;
  // Another number wakes those that sleep; the loop stays closed.
  state_ += kClosed << 1;
  WakeAll(&state_);
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Work(int thread) {
  SetFloatMode(kComputeFloatMode);
  if (!affinity_.empty()) SetCpus({affinity_[thread]});
  // The number before the first loop's: it may have begun already.
  uint32_t last = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    uint32_t state = state_.load(std::memory_order_acquire);
    const auto is_new = [&] {
      state = state_.load(std::memory_order_acquire);
      return (state & kNumber) != last;
    };
    if (!Spin(Now() + kWorkerSpin, is_new)) {
      ++asleep_;
      Sleep(&state_, state);
      --asleep_;
      continue;
    }
    last = state & kNumber;
    bool inside = false;
    while (!inside && (state & kClosed) == 0 && (state & kNumber) == last) {
      inside = state_.compare_exchange_weak(state, state + 1,
                                            std::memory_order_acq_rel);
    }
    if (!inside) continue;
    TakeRanges(thread);
    state = state_.fetch_sub(1) - 1;
    if ((state & kClosed) != 0 && (state & kInside) == 0 && caller_asleep_) {
      WakeAll(&state_);
    }
  }
}

void ThreadPool::TakeRanges(int thread) {
  for (int i = 0; i < threads_; ++i) {
    Share& share = shares_[(thread + i) % threads_];
    for (;;) {
      const int64_t n = share.next.fetch_add(1, std::memory_order_relaxed);
      if (n >= share.end) break;
      const int64_t begin = n * range_;
      body_(context_, begin, std::min(items_ - begin, range_) + begin, thread);
    }
  }
}

void ThreadPool::WaitForWorkers(int64_t start) {
  uint32_t state = state_.fetch_or(kClosed) | kClosed;
  if ((state & kInside) == 0) return;
  const auto done = [&] {
    state = state_.load(std::memory_order_acquire);
    return (state & kInside) == 0;
  };
  const int64_t now = Now();
  if (Spin(now + kCallerSpin + (now - start) / 2, done)) return;
  caller_asleep_ = true;
  while (!done()) Sleep(&state_, state);
  caller_asleep_ = false;
  WorkAlone();
}

void ThreadPool::WorkAlone() {
  const int64_t now = Now();
  // Soon after the last time alone it is the same trouble.
  const bool again = now - alone_until_ < 4 * alone_span_;
  alone_span_ = again ? std::min(2 * alone_span_, kAloneMost) : kAloneLeast;
  alone_until_ = now + alone_span_;
}

bool ThreadPool::LostCore(int64_t now) {
  if (window_ != 0 && now - window_ < kWindow) return false;
  const int64_t used = ThreadTime();
  const bool lost = window_ != 0 && used - used_ < (now - window_) / 4 * 3;
  window_ = now;
  used_ = used;
  return lost;
}

void ThreadPool::ParallelFor(int64_t items, RangeFunction body, void* context) {
  if (items <= 0) return;
  ScopedComputeFloatMode float_mode;
  const int64_t start = threads_ == 1 ? 0 : Now();
  if (items == 1 || threads_ == 1 || start < alone_until_) {
    body(context, 0, items, 0);
    return;
  }
  const int64_t most = int64_t{threads_} * kRangesPerThread;
  // What passed between two loops is not the pool's business.
  if (start - last_end_ > kPause) window_ = 0;
  body_ = body;
  context_ = context;
  items_ = items;
  range_ = items / most + (items % most != 0);
  const int64_t ranges = items / range_ + (items % range_ != 0);
  for (int thread = 0; thread < threads_; ++thread) {
    shares_[thread].next.store(ranges * thread / threads_,
                               std::memory_order_relaxed);
    shares_[thread].end = ranges * (thread + 1) / threads_;
  }
  state_.store((state_.load() & kNumber) + (kClosed << 1));
  if (asleep_ > 0) WakeAll(&state_);
  TakeRanges(0);
  WaitForWorkers(start);
  last_end_ = Now();
  if (LostCore(last_end_)) WorkAlone();
}

ThreadPool::Scope::Scope(ThreadPool* pool) : pool_(pool) {
  if (pool_->affinity_.empty()) return;
  pool_->saved_cpus_ = AllowedCpus();
  SetCpus({pool_->affinity_[0]});
}

ThreadPool::Scope::~Scope() {
  if (!pool_->affinity_.empty()) SetCpus(pool_->saved_cpus_);
}

}  // namespace weft
