// The next token of one text: log-probabilities as asked for, then bias, the
// minimum length, the constraint, and the sampler's chain.
//
// For one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/generation/request.h"
#include "runtime/generation/sampler.h"
#include "text/token_constraint.h"

namespace weft {

// Memory for the time of a call: one for each thread that chooses.
struct ChooserScratch {
  explicit ChooserScratch(int32_t vocabulary_size);

  std::shared_ptr<SamplerScratch> sampler;
  std::vector<float> logits;
  std::vector<uint64_t> mask;
};

class TokenChooser {
 public:
  // For one choice of `request`, with its own constraint (null: none).
  // `end_tokens` are the vocabulary's end-of-text tokens; it and `request` must
  // outlive the chooser. `scratch` is one of those that Choose will get.
  // Errors: those of Sampler::Create.
  static absl::StatusOr<TokenChooser> Create(
      const Request* request, int choice,
      std::unique_ptr<TokenConstraint> constraint,
      absl::Span<const int32_t> end_tokens, const ChooserScratch& scratch);

  // `history`: prompt and text so far, of which `generated` tokens are text.
  // Errors: the sampler's, the constraint's.
  absl::Status Choose(absl::Span<const float> logits,
                      absl::Span<const int32_t> history, int64_t generated,
                      ChooserScratch* scratch, GeneratedToken* token);

  // Tells the constraint of a token that the text goes on with.
  absl::Status Accept(int32_t token);

  const Sampler& sampler() const { return sampler_; }
  // Null if there is none.
  TokenConstraint* constraint() const { return constraint_.get(); }

  // Whether this token ends the text, and if so, why.
  bool Ends(int32_t token, FinishReason* reason) const;

 private:
  TokenChooser(const Request* request,
               std::unique_ptr<TokenConstraint> constraint,
               absl::Span<const int32_t> end_tokens, Sampler sampler)
      : request_(request),
        constraint_(std::move(constraint)),
        end_tokens_(end_tokens),
        sampler_(std::move(sampler)) {}

  absl::Status ApplyConstraint(absl::Span<float> logits,
                               std::vector<uint64_t>* mask);
  void ForbidEnd(absl::Span<float> logits, bool stop_tokens_too) const;

  const Request* request_;
  std::unique_ptr<TokenConstraint> constraint_;
  absl::Span<const int32_t> end_tokens_;
  Sampler sampler_;
};

}  // namespace weft
