// weft in a C++ program: load or compile a model, tokenise, generate, look at
// logits.
//
//   absl::StatusOr<std::unique_ptr<weft::Engine>> engine =
//       weft::Engine::Load("model.gguf", {});
//   if (!engine.ok()) return Fail(engine.status());
//   weft::GenerateRequest request;
//   request.prompt = "It is a truth universally acknowledged";
//   auto result = (*engine)->Generate(request, [](absl::string_view text) {
//     std::cout << text;
//     return true;  // false stops
//   });
//
// An Engine holds one plan, one KV cache and one thread pool, and runs one
// request at a time: calls from several threads wait for each other. Cancel may
// be called from anywhere. Results are bit-identical for the same input
// whatever the chunk size and the number of threads.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "runtime/model.h"
#include "runtime/sampler.h"
#include "runtime/session.h"
#include "text/tokenizer.h"

namespace weft {

// The machine's best instruction set, f16 KV cache, the model's context up to
// 4096.
ModelOptions DefaultModelOptions();

struct EngineOptions {
  ModelOptions model = DefaultModelOptions();
  int threads = 0;            // 0: physical cores that the process may use
  std::vector<int> affinity;  // empty, or a CPU for each thread
  bool huge_pages = false;
  int sequences = 1;  // that run at the same time (scheduler.h)
  // Pages of the KV cache, 64 positions each, for all sequences together. 0:
  // for as many whole contexts.
  int64_t kv_pages = 0;
  // Load although the planned peak is above the memory available.
  bool force = false;
  Progress progress = nullptr;
};

enum class ContextOverflow {
  kStop,
  // Keeps the first tokens (attention sinks; Xiao et al. 2023,
  // arXiv:2309.17453) and the newest half of the rest, and runs the kept ones
  // again at their new positions: the result is bit-identical to a new prompt
  // of these tokens.
  kShift,
};

enum class StopReason { kEndOfText, kLength, kContext, kCancelled };
const char* Name(StopReason reason);  // "eos", "length", "context", "cancelled"

struct GenerateRequest {
  // Text, or ids when the text is empty and there are some.
  std::string prompt;
  std::vector<int32_t> prompt_tokens;
  EncodeOptions encode;
  int64_t max_tokens = 100;
  SamplingOptions sampling;
  // Whether end-of-text tokens end the text; else they go on like any other.
  bool stop_at_end_of_text = true;
  ContextOverflow overflow = ContextOverflow::kStop;
  int64_t shift_keep = 4;  // first tokens that kShift keeps
};

struct GenerateResult {
  std::vector<int32_t> prompt_tokens;
  std::vector<int32_t> tokens;  // without the end-of-text token
  std::string text;
  double prefill_seconds = 0;
  double decode_seconds = 0;
  StopReason stop_reason = StopReason::kLength;
  bool bos_in_prompt =
      false;  // the prompt itself began with BOS: none was added
};

// Called with whole characters as they come; false stops (kCancelled).
using TextCallback = std::function<bool(absl::string_view text)>;

// An error for models that give no logits (encoders).
absl::Status CheckGenerates(const Plan& plan);

class Engine {
 public:
  // A GGUF file or a plan file; an empty path is the default model. Errors say
  // what file, where and what to do; memory that does not suffice is told, with
  // both numbers, before weights are touched.
  static absl::StatusOr<std::unique_ptr<Engine>> Load(
      const std::string& path, const EngineOptions& options);
  ~Engine();

  const Plan& plan() const { return *plan_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  int threads() const { return threads_->threads(); }
  double load_seconds() const { return load_seconds_; }

  absl::StatusOr<GenerateResult> Generate(const GenerateRequest& request,
                                          const TextCallback& callback);

  // Runs `tokens` as a sequence of their own, `chunk` at a time (0: as the plan
  // likes), and tells the logits at `positions` (ascending).
  absl::Status Evaluate(absl::Span<const int32_t> tokens,
                        absl::Span<const int64_t> positions, int64_t chunk,
                        const LogitsCallback& callback);

  // Encoders only, whole texts of at most plan().max_tokens() and context()
  // tokens. The vector of each token:
  absl::Status Hidden(absl::Span<const int32_t> tokens,
                      const LogitsCallback& callback);
  // The text's, pooled as the model says (its mean where it does not):
  absl::StatusOr<std::vector<float>> Embed(absl::Span<const int32_t> tokens);

  // Ends a Generate that is running, soon; thread-safe and safe in signal
  // handlers.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  // For what composes steps itself (benchmarks, servers): the parts. One thread
  // at a time, and none of the calls above meanwhile.
  Executor& executor() { return *executor_; }
  KvCache& cache() { return *cache_; }
  ThreadPool& thread_pool() { return *threads_; }

 private:
  Engine() = default;

  absl::Status Prefill(Session& session, absl::Span<const int32_t> tokens);
  absl::StatusOr<StopReason> Shift(const GenerateRequest& request,
                                   Session& session);

  absl::Mutex mutex_;
  std::atomic<bool> cancelled_{false};
  std::shared_ptr<Plan> plan_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<Executor> executor_;
  double load_seconds_ = 0;
};

}  // namespace weft
