// One sequence: its tokens so far, its pages of the KV cache, and how more
// tokens are run through the plan.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/execution/executor.h"
#include "runtime/plan/plan.h"

namespace weft {

// Called with the position of a token and the logits after it (one per token of
// the vocabulary, valid during the call); of an encoder, the token's vector.
using LogitsCallback = std::function<absl::Status(
    int64_t position, absl::Span<const float> logits)>;

// Adapters have the scales that the plan says. Not thread-safe.
class Session {
 public:
  // What is given must outlive the session. `slot` is this session's own.
  Session(const Plan& plan, Executor* executor, KvCache* cache, int32_t slot);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The tokens that were run, oldest first; positions 0 to size() - 1.
  absl::Span<const int32_t> tokens() const { return tokens_; }
  // How many more fit.
  int64_t room() const;

  // Runs tokens after those before, at most `chunk` in one step (0: as many as
  // the plan takes), and leaves the logits after the last one in logits().
  // Errors: no room (nothing has run), no pages.
  absl::Status Append(absl::Span<const int32_t> tokens, int64_t chunk = 0);

  // The same, and tells the logits at each of `positions` (ascending, of the
  // new tokens).
  absl::Status Evaluate(absl::Span<const int32_t> tokens,
                        absl::Span<const int64_t> positions, int64_t chunk,
                        const LogitsCallback& callback);

  // Truncate goes back to here, or any token since, at little cost
  // (Executor::Mark).
  void Mark() { executor_->Mark(slot_); }

  // One float per token of the vocabulary, after the last Append.
  absl::Span<const float> logits() const { return logits_; }

  // Forgets all tokens from `size` on. Where there are states by sequence which
  // cannot go back so far, those before run again.
  absl::Status Truncate(int64_t size);

 private:
  // An error with the numbers when this many more tokens do not fit.
  absl::Status CheckRoom(size_t tokens) const;
  // Tokens in one step, for the `chunk` that a caller asked for.
  int64_t StepTokens(int64_t chunk) const;
  absl::Status RunChunk(absl::Span<const int32_t> tokens,
                        absl::Span<const int32_t> output_rows, float* logits);

  const Plan& plan_;
  Executor* executor_;
  KvCache* cache_;
  const int32_t slot_;
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;
  // Reused by every step, so that a step allocates nothing.
  std::vector<int32_t> positions_, slots_;
  std::vector<float> adapter_scales_;  // of as many rows, all alike
};

}  // namespace weft
