// Who guesses how a text goes on, so that several tokens can be tried in one
// step.
//
// A guess costs time or saves it, and changes no bit: the model runs the
// guessed tokens behind the text, each next token is drawn from its own row as
// ever, and a guess counts only where it is the very token that was drawn
// (Leviathan et al., "Fast Inference from Transformers via Speculative
// Decoding", 2023, without its change of the random draw: equal rows give equal
// bits here, so none is needed).
//
// For one thread at a time. Allocates nothing after Prepare.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/execution/executor.h"
#include "runtime/generation/sampler.h"

namespace weft {

struct Proposal {
  int64_t tokens = 0;
  // How good the proposer takes it to be, the last the best; how often those of
  // one strength come true is counted. Where it takes time, always the last.
  int strength = 0;
  // That the guesses took, where that counts (takes_time); what had to run
  // before any, once, is not in it.
  double seconds = 0;
};

class Proposer {
 public:
  static constexpr int kStrengths = 3;

  virtual ~Proposer() = default;

  // Before all others, once: for the texts of so many slots, each of at most
  // `most_tokens`, and `most_guesses` at once. Errors: no memory.
  virtual absl::Status Prepare(int32_t slots, int64_t most_tokens,
                               int64_t most_guesses) = 0;

  // Another text is in the slot now, or its beginning has changed. Of what was
  // there before, only texts of the same scope (Request::cache_scope) may be
  // the faster for it.
  virtual void Begin(int32_t slot, uint64_t scope) = 0;

  // A step of the model has run, which left these rows (Executor::hidden_rows;
  // none where the plan gives none). Called before others may find the pages of
  // the step's tokens. An error is the step's.
  virtual absl::Status Follow(const Batch& /*batch*/,
                              absl::Span<const float> /*hidden_rows*/) {
    return absl::OkStatus();
  }

  // Writes to `guesses` what may follow `tokens`, the slot's text so far, which
  // begins with what it was in the call before. `sampler` will draw the next
  // token; a copy of it draws with the same random numbers.
  virtual Proposal Propose(int32_t slot, absl::Span<const int32_t> tokens,
                           const Sampler& sampler,
                           absl::Span<int32_t> guesses) = 0;

  // Whether proposing takes time that counts beside a step: then it is not done
  // where it is not worth it.
  virtual bool takes_time() const { return false; }

  // Whether proposing writes to the slot's pages at the positions of the last
  // token and of all guesses but the last: then they must be there.
  virtual bool writes_pages() const { return false; }
};

}  // namespace weft
