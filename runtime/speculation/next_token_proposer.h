// Guesses of the model's own next-token block (Gloeckle et al., "Better &
// Faster Large Language Models via Multi-token Prediction", 2024; DeepSeek-AI,
// arXiv:2412.19437, section 2.2): one block that was trained with the model to
// tell the token behind the next from what the model made of its last token.
//
// Right behind each of the model's steps the block writes its keys and values
// of the step's rows, into the same pages: row t has the text's token t and
// what the model made of token t - 1. So a page holds both for the same tokens,
// and whoever finds it in a cache finds both. To guess, the block runs the last
// token's row, and then its own guesses, each with what it handed on; the
// drawing is that of the text, with its random numbers.
//
// Where what the model made of the token before is not known (the first token;
// the first behind a prefix from the cache), a row of zeros stands for it: such
// a row is a poor guesser and a key among many.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/execution/next_token_block.h"
#include "runtime/plan/plan.h"
#include "runtime/speculation/hidden_rows.h"
#include "runtime/speculation/proposer.h"

namespace weft {

class NextTokenProposer : public Proposer {
 public:
  // `executor` runs the block of this plan (NextTokenPlan) on the cache that
  // the model runs on; both outlive the proposer's use.
  NextTokenProposer(const Plan& plan, Executor* executor);

  absl::Status Prepare(int32_t slots, int64_t most_tokens,
                       int64_t most_guesses) override;
  void Begin(int32_t slot, uint64_t scope) override;
  absl::Status Follow(const Batch& batch,
                      absl::Span<const float> hidden_rows) override;
  Proposal Propose(int32_t slot, absl::Span<const int32_t> tokens,
                   const Sampler& sampler,
                   absl::Span<int32_t> guesses) override;
  bool takes_time() const override { return true; }
  bool writes_pages() const override { return true; }

 private:
  // What stands for the model's row of the token before; zeros: not known.
  const float* Before(int32_t slot, int64_t position) const;

  NextTokenBlock block_;
  const int64_t embedding_, vocabulary_, max_tokens_;
  HiddenRows known_;
  std::vector<float> zeros_, previous_, hidden_, logits_;
  std::vector<int32_t> text_;  // with guesses
  std::optional<Sampler> drawing_;
};

}  // namespace weft
