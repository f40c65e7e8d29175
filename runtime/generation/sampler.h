// Chooses the next token from a row of logits.
//
// The chain is fixed: penalties, top-k, top-p, min-p, temperature, draw. Each
// step sees only what the one before kept:
//   penalties    for every distinct token of the last repeat_window tokens:
//                logit / repeat_penalty if positive, * repeat_penalty if
//                negative (Keskar et al., "CTRL", 2019), then minus
//                frequency_penalty * count and minus presence_penalty (OpenAI
//                API reference)
//   top-k        the k largest logits
//   top-p        the fewest largest whose probabilities reach p, with the one
//                that crosses it (Holtzman et al., "The Curious Case of Neural
//                Text Degeneration", 2020)
//   min-p        those at least p times as probable as the best
//   temperature  probabilities in proportion to exp(logit / temperature)
// Temperature 0 is greedy: the largest logit as it came from the model, lowest
// id on ties, whatever else is set, penalties included.
//
// Sums are in double and equal logits are ordered by id, so that the same
// logits, history and seed give the same token with every standard library.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

struct SamplingOptions {
  float temperature = 0.8f;     // >= 0; 0 is greedy
  int32_t top_k = 50;           // 0 or below: off
  float top_p = 0.9f;           // 0 to 1; 1: off, 0: the best alone
  float min_p = 0.0f;           // 0 to 1; 0: off
  float repeat_penalty = 1.1f;  // > 0; 1: off
  int32_t repeat_window = 64;   // tokens; 0: no penalties, -1: all history
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  uint64_t seed = 0;
};

// Errors name the field, its value and what is allowed.
absl::Status ValidateSampling(const SamplingOptions& options);

// A field that the authors of a model may suggest in its file.
struct SuggestedField {
  absl::string_view key;   // behind `general.sampling.`: "temp"
  absl::string_view name;  // here and in requests: "temperature"
  void (*set)(SamplingOptions* options, double value);
};
absl::Span<const SuggestedField> SuggestedFields();

// One that may be drawn.
struct Candidate {
  int32_t id;
  float logit;         // after penalties
  double probability;  // of being drawn; all candidates' sum to 1
};

// What a Sampler computes in, about 24 bytes per token of the vocabulary. Has
// no state between calls, so samplers that are used in turn may share it.
struct SamplerScratch {
  explicit SamplerScratch(int32_t vocabulary_size);

  std::vector<float> penalized;
  std::vector<int32_t> counts;  // all zero between calls
  std::vector<Candidate> candidates;
};

// One per sequence: it holds the sequence's random state. Not thread-safe.
// Movable.
class Sampler {
 public:
  // All memory is taken here, if `scratch` is not given; the calls below
  // allocate only for an error's message.
  static absl::StatusOr<Sampler> Create(
      const SamplingOptions& options, int32_t vocabulary_size,
      std::shared_ptr<SamplerScratch> scratch = nullptr);

  // What the calls to come compute in; of the same vocabulary.
  void SetScratch(std::shared_ptr<SamplerScratch> scratch) {
    scratch_ = std::move(scratch);
  }

  // `logits`: one per id of the vocabulary. +inf is certain (several share
  // evenly), -inf is never drawn. `history`: the sequence so far, prompt
  // included, oldest first; prompt tokens count whether or not they came from a
  // cache. Errors: a NaN (names its id), nothing that can be drawn, a token of
  // history outside the vocabulary. The random state moves only on success.
  absl::StatusOr<int32_t> Sample(absl::Span<const float> logits,
                                 absl::Span<const int32_t> history);

  // What Sample would draw from: one candidate when greedy; else in order of
  // falling logit, or of rising id where neither top-k nor top-p is on. Valid
  // until the next call.
  absl::StatusOr<absl::Span<const Candidate>> Distribution(
      absl::Span<const float> logits, absl::Span<const int32_t> history);

  // The first step of the chain alone. Valid until the next call.
  absl::StatusOr<absl::Span<const float>> Penalize(
      absl::Span<const float> logits, absl::Span<const int32_t> history);

  const SamplingOptions& options() const { return options_; }

 private:
  Sampler(const SamplingOptions& options,
          std::shared_ptr<SamplerScratch> scratch);
  absl::Status CheckLogits(absl::Span<const float> logits) const;
  void KeepAll();
  void KeepTopK();
  void KeepTopP();
  void KeepMinP(double best);
  void Weigh(float best, double temperature);
  double NextUniform();

  SamplingOptions options_;
  std::shared_ptr<SamplerScratch> scratch_;
  uint64_t random_state_;
};

// Natural logarithm of softmax(logits)[id], in double. Errors: an id outside
// the row, a NaN, or no logit above -inf.
absl::StatusOr<double> LogProbability(absl::Span<const float> logits,
                                      int32_t id);

}  // namespace weft
