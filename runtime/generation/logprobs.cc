#include "runtime/generation/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

absl::StatusOr<LogSoftmax> LogSoftmax::Of(absl::Span<const float> logits) {
  float best = -kInfinity;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("no log-probability: logit ", i,
                       ": is NaN, the model or its weights are broken"));
    }
    best = std::max(best, logits[i]);
  }
  if (best == -kInfinity) {
    return absl::InvalidArgumentError(
        "no log-probability: logits: all are -inf, check the model");
  }
  double total = 0;
  for (const float logit : logits) {
    if (best == kInfinity) {
      total += logit == kInfinity;
    } else {
      total += std::exp(static_cast<double>(logit) - best);
    }
  }
  return LogSoftmax(logits, best, std::log(total));
}

double LogSoftmax::At(int32_t id) const {
  if (best_ == kInfinity) {
    return logits_[id] == kInfinity ? -log_total_ : -kInfinity;
  }
  return static_cast<double>(logits_[id]) - best_ - log_total_;
}

void LogSoftmax::Top(int64_t count, std::vector<TokenLogprob>* top) const {
  top->clear();
  if (count <= 0) return;
  top->reserve(std::min<int64_t>(count, logits_.size()));
  // A heap of the best so far, its worst in front. A later equal has a higher
  // id, so it loses.
  const auto better = [this](const TokenLogprob& a, const TokenLogprob& b) {
    return logits_[a.token] != logits_[b.token]
               ? logits_[a.token] > logits_[b.token]
               : a.token < b.token;
  };
  for (int32_t id = 0; id < static_cast<int32_t>(logits_.size()); ++id) {
    if (static_cast<int64_t>(top->size()) == count) {
      if (!(logits_[id] > logits_[top->front().token])) continue;
      std::pop_heap(top->begin(), top->end(), better);
      top->pop_back();
    }
    top->push_back({id, 0});
    std::push_heap(top->begin(), top->end(), better);
  }
  std::sort_heap(top->begin(), top->end(), better);
  for (TokenLogprob& entry : *top) entry.logprob = At(entry.token);
}

}  // namespace weft
