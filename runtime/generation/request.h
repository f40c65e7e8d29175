// What a Scheduler is asked, and what it tells: plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/steady_cond_var.h"
#include "runtime/generation/logprobs.h"
#include "runtime/generation/sampler.h"
#include "text/token_constraint.h"

namespace weft {

// Never given twice by one scheduler; above 0.
using RequestId = int64_t;

// Bounds that Submit holds requests to, beside those of ValidateSampling.
inline constexpr int kMaxChoices = 128;
inline constexpr int kMaxTopLogprobs = 100;
inline constexpr int kMaxStopStrings = 64;
inline constexpr int64_t kMaxStopBytes = 1024;  // of one stop string

// What becomes of a text that fills the context.
enum class ContextOverflow {
  kStop,
  // Keeps the first tokens (attention sinks; Xiao et al. 2023,
  // arXiv:2309.17453) and the newest half of the rest, and runs the kept ones
  // again at their new positions: what follows is to the bit what follows a
  // prompt of these tokens, penalties included.
  kShift,
};

struct Request {
  // At least one, all within the vocabulary (Tokenizer::Encode).
  std::vector<int32_t> prompt_tokens;
  // Plans that give vectors or scores, and only they, are asked for the
  // prompt's (Event::embedding): nothing is generated, and of the fields below
  // only those about time, turns and the number of choices, which is 1, have a
  // meaning.
  bool embed = false;
  // Most tokens of each choice; below 0: until the text ends or the context is
  // full.
  int64_t max_tokens = 100;
  // Until there are as many, neither end-of-text tokens nor stop tokens are
  // drawn, and stop strings are not looked for.
  int64_t min_tokens = 0;
  // Texts generated side by side. They share the pages of the prompt, which
  // runs once.
  int choices = 1;
  // Choice 0 draws with sampling.seed, choice i with ChoiceSeed(seed, i).
  SamplingOptions sampling;
  // Added to logits before anything else (greedy sampling too); ids must be in
  // the vocabulary, biases no NaN. -infinity forbids a token.
  std::vector<std::pair<int32_t, float>> logit_bias;
  // The text ends before the first of them. Also found across tokens: text that
  // may be the start of one is held back until it is known.
  std::vector<std::string> stop_strings;
  // Tokens that end the text, beside the vocabulary's end-of-text tokens.
  std::vector<int32_t> stop_tokens;
  // Whether end-of-text tokens end the text; else they go on like any other,
  // or, with a constraint, are chosen only where it allows nothing else, and
  // end the text.
  bool stop_at_end_of_text = true;
  // Control tokens print nothing in `text`, but for these, in order.
  bool skip_special = true;
  std::vector<int32_t> shown_special;
  ContextOverflow overflow = ContextOverflow::kStop;
  int64_t shift_keep = 4;  // first tokens that kShift keeps
  // Below 0: no log-probabilities; else of each token, and of this many most
  // probable ones. All are of the model's own softmax, before bias, constraint,
  // penalties and temperature.
  int logprobs = -1;
  // The same for the tokens of the prompt (Event::prompt), in which nothing is
  // taken from the prefix cache then. With it `max_tokens` may be 0 for these
  // alone.
  int prompt_logprobs = -1;
  // An end-of-text or stop token that ends a text is told like others.
  bool tell_end = false;
  // An event of the first choice for each step that runs a part of the prompt.
  bool tell_progress = false;
  // When it passes, the request ends with kDeadline, waiting or running.
  SteadyTime deadline = SteadyTime::max();
  // Tokens may be guessed, to be tried several in a step, where the scheduler
  // has somebody who guesses (SchedulerOptions::proposer).
  bool speculate = true;
  // How much of each of the plan's adapters (ModelInfo::adapters) the request
  // has, finite; 0: nothing. Empty: what the plan says. Only texts with the
  // same share cached pages.
  std::vector<float> adapter_scales;
  // Null, or what allows tokens. Choices beyond the first get clones of it.
  std::unique_ptr<TokenConstraint> constraint;
  // Cached pages are shared only among requests of one scope: give tenants that
  // must not learn of each other's prompts, by their time, scopes of their own.
  uint64_t cache_scope = 0;
  // Whose turn it is (fair_share.h): clients get equal shares of the model, and
  // a client's tasks equal shares of the client's. Requests of one number
  // share; a task of 0 is this request alone.
  uint64_t client = 0, task = 0;
};

// The seed that choice `index` of a request draws with.
uint64_t ChoiceSeed(uint64_t seed, int index);

enum class FinishReason {
  kEndOfText,   // an end-of-text token
  kStopToken,   // one of Request::stop_tokens
  kStopString,  // one of Request::stop_strings
  kLength,      // max_tokens
  kContext,     // the context is full; the last token was drawn from it
  kEmbedded,    // Request::embed: the vector is there
  kDeadline,    // Request::deadline passed
  kCancelled,   // Cancel, or the scheduler was drained or destroyed
  kError,       // Event::status says what
};
const char* Name(FinishReason reason);  // "eos", "stop_token", ...

struct GeneratedToken {
  int32_t id;
  double logprob = 0;             // when asked for
  std::vector<TokenLogprob> top;  // most probable first, lowest id on ties
};

struct Usage {
  int64_t prompt_tokens = 0;
  // Of the prompt, those whose keys and values came from the prefix cache.
  int64_t cached_tokens = 0;
  int64_t processed_tokens = 0;  // of the prompt, those that are computed
  // Drawn in all choices so far: also those that ended a text or were part of a
  // stop string.
  int64_t completion_tokens = 0;
  int64_t drafted_tokens = 0;   // guessed and tried
  int64_t accepted_tokens = 0;  // of them, those that came true
  int64_t preemptions = 0;
  double queue_seconds = 0;        // from Submit until it first ran
  double prompt_seconds = 0;       // from Submit until the prompt had run
  double first_token_seconds = 0;  // from Submit until the first token
};

// News of one choice.
struct Event {
  RequestId request = 0;
  int choice = 0;
  // Whole characters that go on from the text so far; may be empty.
  std::string text;
  // Tokens whose text begins in the text so far. Those that ended it are not
  // told: end-of-text and stop tokens (but see Request::tell_end), and tokens
  // that lie wholly in a stop string.
  std::vector<GeneratedToken> tokens;
  // With Request::prompt_logprobs, of the first choice: the prompt's tokens
  // from its first on, as they are run. The first has no log-probability.
  std::vector<GeneratedToken> prompt;
  // With kEmbedded: the prompt's vector, pooled as the model says (its mean
  // where it does not), not normalised.
  std::vector<float> embedding;
  // The choice's last event; the three below are meant for it.
  bool finished = false;
  FinishReason reason = FinishReason::kLength;
  int stop_string = -1;  // which of them, with kStopString
  absl::Status status;   // with kError
  // The request's last event: nothing of it follows.
  bool last = false;
  Usage usage;  // of the request so far, all choices together
};

// `event` is valid during the call.
using EventCallback = std::function<void(const Event& event)>;

}  // namespace weft
