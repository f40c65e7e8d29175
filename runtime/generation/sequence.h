// What a Batcher keeps of a request and of each of its texts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/generation/choice_output.h"
#include "runtime/generation/fair_share.h"
#include "runtime/generation/mask_maker.h"
#include "runtime/generation/nan_logits.h"
#include "runtime/generation/request.h"
#include "runtime/generation/token_chooser.h"
#include "runtime/speculation/guess_budget.h"

namespace weft {

struct RequestState;

// Requests of one client that have not started. The scheduler's callers and its
// thread change it.
using WaitingCount = std::atomic<int64_t>;

// One choice of a request.
struct Sequence {
  Sequence(RequestState* request, int choice, TokenChooser chooser,
           ChoiceOutput output)
      : request(request),
        choice(choice),
        chooser(std::move(chooser)),
        output(std::move(output)),
        mask(this->chooser.constraint()) {}

  RequestState* request;
  int choice;
  TokenChooser chooser;
  ChoiceOutput output;

  // Prompt and text, none before it starts; after a shift, those that are kept.
  std::vector<int32_t> tokens;
  int64_t prompt = 0;         // of them, how many are the prompt's
  int64_t generated = 0;      // since the prompt, shifts or not
  int32_t slot = -1;          // of the KV cache; -1: waiting
  int64_t computed = 0;       // tokens whose keys and values are there
  int64_t once_computed = 0;  // the same before it had to give way
  int64_t checkpoint = 0;     // tokens at its last one; 0: none
  int64_t rows = 0;           // tokens that run in this step
  int64_t turn = 0;           // tokens that ran since it got its slot
  int64_t told_prompt = 0;    // tokens whose log-probabilities are known
  // Until so many tokens are computed, it runs in steps of its own: one that it
  // shared with others ended in an error, which may be theirs.
  int64_t alone_until = 0;

  // The mask of the next token, where there is a constraint.
  MaskMaker::Job mask;
  bool mask_asked = false;  // for the first time
  // It was not there when the logits were: without it, none are made again.
  bool late_mask = false;
  // While others want its slot; max: it does not wait for a mask.
  SteadyTime without_mask_since = SteadyTime::max();

  // How tokens of the step go on, as guessed: their rows run behind those of
  // `tokens` and count once they are accepted.
  std::vector<int32_t> guesses;
  int64_t forced = 0;           // of them, those that a constraint leaves alone
  int64_t accepted = 0;         // of them, from the first on
  int64_t tried_from = 0;       // `computed` before the step
  int64_t last_row = 0;         // of the step, before those of guesses
  int64_t first_guess_row = 0;  // of the output
  int32_t untried = -1;         // guessed, but not worth a row; -1: none
  int guess_strength = 0;       // Proposal::strength
  GuessRecord guess_record;

  // Chosen in this step.
  GeneratedToken token;
  NanLogits nans;
  absl::Status choice_status;

  Event event;  // not told yet
  bool has_news = false;
  bool finished = false;
  SteadyTime last_token;
};

struct RequestState {
  RequestId id = 0;
  Request request;
  EventCallback callback;
  uint64_t scope = 0;  // of the prefix cache
  FairShare::Member share;
  std::vector<std::unique_ptr<Sequence>> sequences;
  int64_t unfinished = 0;  // sequences
  int64_t untold = 0;      // sequences whose last event has not been told
  bool prompt_done = false;
  bool started = false;
  std::shared_ptr<WaitingCount> waiting;  // null: not counted
  bool failed = false, cancelled = false;
  Usage usage;
  SteadyTime submitted;
};

// Older requests come first, and the choices of each in order.
inline bool Older(const Sequence& a, const Sequence& b) {
  return a.request->id != b.request->id ? a.request->id < b.request->id
                                        : a.choice < b.choice;
}

inline bool RunsAlone(const Sequence& sequence) {
  return sequence.computed < sequence.alone_until;
}

// Tokens that are not computed yet.
inline int64_t Left(const Sequence& sequence) {
  return static_cast<int64_t>(sequence.tokens.size()) - sequence.computed;
}

}  // namespace weft
