#include "runtime/speculation/next_token_proposer.h"

#include <algorithm>
#include <chrono>

#include "base/first_largest.h"
#include "base/status.h"

namespace weft {

NextTokenProposer::NextTokenProposer(const Plan& plan, Executor* executor)
    : block_(executor),
      embedding_(plan.model.embedding_length),
      vocabulary_(plan.model.vocabulary_size),
      max_tokens_(plan.max_tokens()) {}

absl::Status NextTokenProposer::Prepare(int32_t slots, int64_t most_tokens,
                                        int64_t most_guesses) {
  known_ = HiddenRows(slots, most_guesses + HiddenRows::kBehind, embedding_);
  zeros_.assign(embedding_, 0.0f);
  hidden_.resize(embedding_);
  previous_.resize(max_tokens_ * embedding_);
  logits_.resize(vocabulary_);
  text_.reserve(most_tokens + most_guesses);
  return absl::OkStatus();
}

void NextTokenProposer::Begin(int32_t slot, uint64_t) { known_.Clear(slot); }

const float* NextTokenProposer::Before(int32_t slot, int64_t position) const {
  const float* const row = known_.Find(slot, position - 1);
  return row != nullptr ? row : zeros_.data();
}

absl::Status NextTokenProposer::Follow(const Batch& batch,
                                       absl::Span<const float> hidden_rows) {
  const int64_t rows = static_cast<int64_t>(batch.ids.size());
  const auto follows = [&](int64_t row, int64_t other) {
    return batch.slots[row] == batch.slots[other] &&
           batch.positions[row] - batch.positions[other] == row - other;
  };
  for (int64_t row = 0; row < rows; ++row) {
    const float* const before =
        row > 0 && follows(row, row - 1)
            ? hidden_rows.data() + (row - 1) * embedding_
            : Before(batch.slots[row], batch.positions[row]);
    std::copy_n(before, embedding_, previous_.begin() + row * embedding_);
  }
  // Of a prompt, only the last ones will be asked for.
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t later = row + known_.rows();
    if (later < rows && follows(later, row)) continue;
    known_.Set(batch.slots[row], batch.positions[row],
               hidden_rows.data() + row * embedding_);
  }
  NextTokenRows step;
  step.ids = batch.ids;
  step.positions = batch.positions;
  step.slots = batch.slots;
  step.previous_hidden = previous_.data();
  return block_.Run(step);
}

Proposal NextTokenProposer::Propose(int32_t slot,
                                    absl::Span<const int32_t> tokens,
                                    const Sampler& sampler,
                                    absl::Span<int32_t> guesses) {
  const auto start = std::chrono::steady_clock::now();
  Proposal proposal;
  proposal.strength = kStrengths - 1;
  int32_t position = static_cast<int32_t>(tokens.size()) - 1;
  // Has not run since the text began anew: nothing to go on from.
  if (known_.Find(slot, position - 1) == nullptr) return proposal;
  text_.assign(tokens.begin(), tokens.end());
  drawing_ = sampler;
  const int32_t first_row = 0;
  NextTokenRows step;
  step.slots = absl::MakeConstSpan(&slot, 1);
  step.positions = absl::MakeConstSpan(&position, 1);
  step.output_rows = absl::MakeConstSpan(&first_row, 1);
  step.logits = logits_.data();
  step.hidden = hidden_.data();
  std::copy_n(Before(slot, position), embedding_, previous_.begin());
  step.previous_hidden = previous_.data();
  for (int32_t& guess : guesses) {
    step.ids = absl::MakeConstSpan(text_).last(1);
    if (!block_.Run(step).ok()) break;
    // Drawn as the text's next token will be: where both think alike, the same
    // random number gives the same token.
    const absl::StatusOr<int32_t> drawn = drawing_->Sample(logits_, text_);
    guess = drawn.ok() ? *drawn : static_cast<int32_t>(FirstLargest(logits_));
    text_.push_back(guess);
    ++proposal.tokens;
    ++position;
    std::copy(hidden_.begin(), hidden_.end(), previous_.begin());
  }
  proposal.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return proposal;
}

}  // namespace weft
