// Log-probabilities of a row of logits: the model's own, natural logarithm of
// softmax(logits), in double.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

struct TokenLogprob {
  int32_t token;
  double logprob;
};

// The sum over a row, made once, for as many of its tokens as are wanted. Keeps
// the row by reference.
class LogSoftmax {
 public:
  // Errors: a NaN (names its id), no logit above -inf.
  static absl::StatusOr<LogSoftmax> Of(absl::Span<const float> logits);

  // Requires an id within the row. Logits of +inf share all evenly.
  double At(int32_t id) const;

  // The `count` most probable ones, best first, lowest id on ties; all if there
  // are fewer.
  void Top(int64_t count, std::vector<TokenLogprob>* top) const;

 private:
  LogSoftmax(absl::Span<const float> logits, float best, double log_total)
      : logits_(logits), best_(best), log_total_(log_total) {}

  absl::Span<const float> logits_;
  float best_;
  double log_total_;
};

}  // namespace weft
