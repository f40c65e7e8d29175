// Guessed tokens: who guesses how many, what of them comes true, and what
// becomes of the rest.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "ops/kernels/kernel.h"
#include "runtime/generation/batcher.h"

namespace weft {
namespace {

// Units of TokenConstraint::Prepare that a token to skip to may take; as many
// as are spent at once in mask_maker.cc.
constexpr int64_t kAtOnce = 2000;

// Where guesses take time and none is worth it, one is made in so many steps,
// to see whether that has changed.
constexpr int64_t kRetrySteps = 64;

constexpr double kGuessSecondsShare = 0.125;

// The only token of a mask for `vocabulary` tokens; -1: there are several, or
// none.
int32_t OnlyToken(absl::Span<const uint64_t> mask, int64_t vocabulary) {
  int64_t only = -1;
  for (size_t word = 0; word < mask.size(); ++word) {
    if (mask[word] == 0) continue;
    uint64_t bits = mask[word];
    const int64_t left = vocabulary - static_cast<int64_t>(word) * 64;
    if (left < 64) bits &= (uint64_t{1} << left) - 1;
    if (bits == 0) continue;
    if (only >= 0 || (bits & (bits - 1)) != 0) return -1;
    only = static_cast<int64_t>(word) * 64 + __builtin_ctzll(bits);
  }
  return static_cast<int32_t>(only);
}

}  // namespace

// Before the step's rows are put together, where all that runs are texts'.
void Batcher::GuessTokens() {
  guesses_ = false;
  if (guess_rows_ == 0) return;
  int64_t rows = 0;
  for (Sequence* sequence : running_) sequence->untried = -1;
  for (const Sequence* sequence : running_) {
    rows += sequence->rows;
    const int64_t left =
        static_cast<int64_t>(sequence->tokens.size()) - sequence->computed;
    if (sequence->rows > 1 || (sequence->rows == 1 && left > 1)) return;
  }
  const int64_t room =
      std::min({guess_rows_, max_tokens_ - rows, StepCosts::kMostRows - rows});
  if (room < 1) return;
  FindGuesses(rows, room);
  for (Sequence* sequence : running_) {
    if (!sequence->guesses.empty()) TakePagesForGuesses(sequence);
    if (sequence->guesses.empty()) continue;
    guesses_ = true;
    sequence->accepted = 0;
    sequence->tried_from = sequence->computed;
    executor_.Mark(sequence->slot);
  }
}

// What a constraint leaves alone comes first: it costs no more than it will.
// Then what is proposed, as far as it is worth it.
void Batcher::FindGuesses(int64_t rows, int64_t room) {
  Proposer* const proposer = options_.proposer.get();
  offers_.assign(running_.size(), GuessOffer());
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence* const sequence = running_[i];
    sequence->forced = 0;
    if (sequence->rows == 0 || !sequence->mask.ready()) continue;
    const int64_t most = MostGuesses(*sequence, room);
    if (most < 1) continue;
    if (sequence->chooser.constraint() != nullptr) {
      GuessForced(sequence, most);
      rows += sequence->forced;
      room -= sequence->forced;
      if (sequence->forced > 0) continue;
    }
    if (proposer == nullptr || !sequence->request->request.speculate) continue;
    offers_[i].most = most;
    if (proposer->takes_time()) {
      sequence->guess_strength = Proposer::kStrengths - 1;
    } else {
      Propose(sequence, most);
      offers_[i].most = static_cast<int64_t>(sequence->guesses.size());
    }
    offers_[i].probability =
        sequence->guess_record.Probability(sequence->guess_strength);
  }
  if (proposer == nullptr) return;
  if (options_.always_guess) {
    for (GuessOffer& offer : offers_) {
      offer.taken = std::min(offer.most, room);
      room -= offer.taken;
    }
  } else {
    ShareGuesses(step_costs_, rows, static_cast<double>(rows), room,
                 proposer->takes_time() ? guess_seconds_ : 0,
                 absl::MakeSpan(offers_));
  }
  if (proposer->takes_time()) return ProposeWhatIsWorthIt(room);
  for (size_t i = 0; i < running_.size(); ++i) {
    std::vector<int32_t>& guesses = running_[i]->guesses;
    if (running_[i]->forced > 0 || guesses.empty()) continue;
    // Whether it would have come true is seen without a row of its own.
    if (offers_[i].taken == 0) running_[i]->untried = guesses[0];
    guesses.resize(offers_[i].taken);
  }
}

void Batcher::ProposeWhatIsWorthIt(int64_t room) {
  const bool any =
      std::any_of(offers_.begin(), offers_.end(),
                  [](const GuessOffer& offer) { return offer.taken > 0; });
  if (!any && room > 0 && stats_.steps % kRetrySteps == 0) {
    const auto offer =
        std::find_if(offers_.begin(), offers_.end(),
                     [](const GuessOffer& offer) { return offer.most > 0; });
    if (offer != offers_.end()) offer->taken = 1;
  }
  int64_t guesses = 0;
  double seconds = 0;
  for (size_t i = 0; i < running_.size(); ++i) {
    const int64_t taken = offers_[i].taken;
    if (taken == 0) continue;
    seconds += Propose(running_[i], taken);
    guesses += static_cast<int64_t>(running_[i]->guesses.size());
  }
  if (guesses == 0) return;
  seconds /= static_cast<double>(guesses);
  guess_seconds_ =
      guess_seconds_ == 0
          ? seconds
          : guess_seconds_ + kGuessSecondsShare * (seconds - guess_seconds_);
}

// Returns the seconds it took, where that counts.
double Batcher::Propose(Sequence* sequence, int64_t most) {
  std::vector<int32_t>& guesses = sequence->guesses;
  if (options_.proposer->writes_pages()) {
    most = ReserveForGuesses(sequence, most);
  }
  guesses.resize(most);
  if (guesses.empty()) return 0;
  const Proposal proposal = options_.proposer->Propose(
      sequence->slot, sequence->tokens, sequence->chooser.sampler(),
      absl::MakeSpan(guesses));
  guesses.resize(proposal.tokens);
  sequence->guess_strength = proposal.strength;
  if (!guesses.empty() && !IsAllowed(sequence, guesses[0])) guesses.clear();
  return proposal.seconds;
}

// How many tokens may be tried behind the one that runs: as many as the text
// may have, the context holds, and lie before the next checkpoint.
int64_t Batcher::MostGuesses(const Sequence& sequence, int64_t most) const {
  if (RunsAlone(sequence)) return 0;
  const Request& request = sequence.request->request;
  most = std::min(most, capacity_ - 1 - sequence.computed);
  if (request.max_tokens >= 0) {
    most = std::min(most, request.max_tokens - sequence.generated - 1);
  }
  if (checkpoints_.any()) {
    most = std::min(most, NextCheckpoint(sequence) - sequence.computed - 1);
  }
  return std::max<int64_t>(most, 0);
}

// The tokens of which the constraint allows no other. They are asked for like
// guesses, so all of them is as it would be: log-probabilities, the random
// draws, and logits that are no numbers.
void Batcher::GuessForced(Sequence* sequence, int64_t most) {
  const absl::Span<uint64_t> mask = absl::MakeSpan(mask_words_);
  const int64_t vocabulary = plan_.model.vocabulary_size;
  TokenConstraint* constraint = sequence->chooser.constraint();
  std::unique_ptr<TokenConstraint> ahead;
  std::vector<int32_t>& guesses = sequence->guesses;
  FinishReason reason;
  while (static_cast<int64_t>(guesses.size()) < most) {
    if (!constraint->Mask(mask).ok()) break;
    const int32_t only = OnlyToken(mask, vocabulary);
    if (only < 0 || sequence->chooser.Ends(only, &reason)) break;
    guesses.push_back(only);
    if (ahead == nullptr) {
      ahead = constraint->Clone();
      constraint = ahead.get();
    }
    if (!ahead->Accept(only).ok() || !ahead->Prepare(kAtOnce)) break;
  }
  sequence->forced = static_cast<int64_t>(guesses.size());
}

bool Batcher::IsAllowed(Sequence* sequence, int32_t token) {
  TokenConstraint* const constraint = sequence->chooser.constraint();
  if (constraint == nullptr) return true;
  return constraint->Mask(absl::MakeSpan(mask_words_)).ok() &&
         (mask_words_[token / 64] >> (token % 64) & 1) != 0;
}

// Only of those that nothing is in: what is kept for others is worth more.
// Returns for how many there are any.
int64_t Batcher::ReserveForGuesses(Sequence* sequence, int64_t guesses) {
  const PagePool& pool = cache_.pool();
  const int64_t run = sequence->computed + sequence->rows;
  const int64_t pages =
      int64_t{pool.held_pages(sequence->slot)} + pool.free_pages();
  guesses = std::min(guesses, pages * kPageTokens - run);
  if (guesses < 1) return 0;
  return cache_.Reserve(sequence->slot, run + guesses).ok() ? guesses : 0;
}

void Batcher::TakePagesForGuesses(Sequence* sequence) {
  std::vector<int32_t>& guesses = sequence->guesses;
  guesses.resize(
      ReserveForGuesses(sequence, static_cast<int64_t>(guesses.size())));
}

// After the step, and after the tokens of its own rows are chosen: goes on with
// the rows of guesses as long as they are those of what was drawn, and takes
// back the others.
void Batcher::TakeGuesses() {
  for (Sequence* sequence : choosing_) {
    if (sequence == nullptr || sequence->untried < 0) continue;
    if (!sequence->finished) {
      sequence->guess_record.Add(sequence->guess_strength,
                                 sequence->tokens.back() == sequence->untried);
    }
  }
  if (!guesses_) return;
  accepting_.clear();
  for (Sequence* sequence : choosing_) {
    if (sequence != nullptr && Accepts(sequence)) {
      accepting_.push_back(sequence);
    }
  }
  while (!accepting_.empty()) {
    ChooseAcceptedTokens();
    step_end_ = std::chrono::steady_clock::now();
    for (Sequence* sequence : accepting_) TakeToken(sequence);
    accepting_.erase(
        std::remove_if(accepting_.begin(), accepting_.end(),
                       [this](Sequence* s) { return !Accepts(s); }),
        accepting_.end());
  }
  size_t i = 0;
  while (i < running_.size()) {
    Sequence* const sequence = running_[i];
    absl::Status status = Settle(sequence);
    if (!status.ok()) Finish(sequence, FinishReason::kError, std::move(status));
    if (i < running_.size() && running_[i] == sequence) ++i;
  }
}

void Batcher::ChooseAcceptedTokens() {
  const int64_t rows = static_cast<int64_t>(accepting_.size());
  const int64_t parts = std::min(rows, static_cast<int64_t>(scratch_.size()));
  const auto choose = [&](int64_t begin, int64_t end, int) {
    for (int64_t part = begin; part < end; ++part) {
      for (int64_t i = part; i < rows; i += parts) {
        Sequence* const sequence = accepting_[i];
        ChooseToken(sequence,
                    sequence->first_guess_row + sequence->accepted - 1,
                    &scratch_[part]);
      }
    }
  };
  threads_.ParallelFor(parts, choose);
}

// Whether the token that was just taken is the next one that was guessed, so
// that its row has run already, and the one after it can be chosen now.
bool Batcher::Accepts(Sequence* sequence) {
  const size_t next = sequence->accepted;
  if (sequence->finished || next >= sequence->guesses.size()) return false;
  const bool right = sequence->tokens.back() == sequence->guesses[next];
  if (sequence->forced == 0) {
    sequence->guess_record.Add(sequence->guess_strength, right);
  }
  if (!right) return false;
  // Without the mask its logits are of no use: as in DropLateMasks.
  if (!sequence->mask.ready()) {
    sequence->late_mask = true;
    return false;
  }
  ++sequence->accepted;
  ++sequence->computed;
  ++sequence->turn;
  FairShare::Served(sequence->request->share, 1);
  return true;
}

// Takes back what was tried and is not kept, and only then lets others find
// the rest, which is as if it had run row by row.
absl::Status Batcher::Settle(Sequence* sequence) {
  if (sequence->guesses.empty()) return absl::OkStatus();
  RequestState* const request = sequence->request;
  const int64_t drafted =
      static_cast<int64_t>(sequence->guesses.size()) - sequence->forced;
  sequence->guesses.clear();
  if (sequence->forced == 0) {
    stats_.drafted_tokens += drafted;
    stats_.accepted_tokens += sequence->accepted;
    request->usage.drafted_tokens += drafted;
    request->usage.accepted_tokens += sequence->accepted;
  }
  const int64_t begin = sequence->tried_from, end = sequence->computed;
  const absl::Status status = executor_.Truncate(sequence->slot, end);
  // Nothing has run: the step ended in an error.
  if (!status.ok() || end == begin) return status;
  if (checkpoints_.any() && end % Checkpoints::kInterval == 0) {
    AddCheckpoint(sequence);
  }
  return AddPages(sequence, begin);
}

}  // namespace weft
