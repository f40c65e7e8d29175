// The cost that matters is the pass over a vocabulary of 128k, once per token.
// With top-k on (the default) it is one comparison per logit against the worst
// of the k kept so far; without, candidates are sorted only as far as top-p
// reaches.
#include "runtime/generation/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/exponentials.h"
#include "base/first_largest.h"
#include "runtime/generation/logprobs.h"

namespace weft {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Up to here a heap of the best beats partitioning the whole vocabulary.
constexpr size_t kMaxHeap = 512;

// Weights that are computed together.
constexpr size_t kWeighed = 256;

// Candidates that top-p sorts at first; four times more each time it falls
// short.
constexpr size_t kFirstSorted = 256;

// A total order, so that ties are cut the same way by every standard library.
bool Better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

absl::Status OptionError(absl::string_view field, double value,
                         absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(
      "invalid sampling option: ", field, ": ", value, ", must be ", allowed));
}

absl::Status NothingToDraw() {
  return absl::InvalidArgumentError(
      "cannot sample: logits: all are -inf, check the model or the constraint");
}

}  // namespace

static int32_t NearestInteger(double value) {
  return static_cast<int32_t>(
      std::clamp(value, double{std::numeric_limits<int32_t>::min()},
                 double{std::numeric_limits<int32_t>::max()}));
}

absl::Span<const SuggestedField> SuggestedFields() {
  static constexpr SuggestedField kFields[] = {
      {"temp", "temperature",
       [](SamplingOptions* o, double v) {
         o->temperature = static_cast<float>(v);
       }},
      {"top_k", "top_k",
       [](SamplingOptions* o, double v) { o->top_k = NearestInteger(v); }},
      {"top_p", "top_p",
       [](SamplingOptions* o, double v) { o->top_p = static_cast<float>(v); }},
      {"min_p", "min_p",
       [](SamplingOptions* o, double v) { o->min_p = static_cast<float>(v); }},
      {"penalty_repeat", "repeat_penalty",
       [](SamplingOptions* o, double v) {
         o->repeat_penalty = static_cast<float>(v);
       }},
      {"penalty_last_n", "repeat_window",
       [](SamplingOptions* o, double v) {
         o->repeat_window = NearestInteger(v);
       }},
  };
  return kFields;
}

absl::Status ValidateSampling(const SamplingOptions& options) {
  // Written so that NaN fails.
  const auto finite = [](float x) { return x > -kInfinity && x < kInfinity; };
  if (!(options.temperature >= 0 && finite(options.temperature))) {
    return OptionError("temperature", options.temperature,
                       "finite, 0 or above");
  }
  if (!(options.top_p >= 0 && options.top_p <= 1)) {
    return OptionError("top_p", options.top_p, "between 0 and 1");
  }
  if (!(options.min_p >= 0 && options.min_p <= 1)) {
    return OptionError("min_p", options.min_p, "between 0 and 1");
  }
  if (!(options.repeat_penalty > 0 && finite(options.repeat_penalty))) {
    return OptionError("repeat_penalty", options.repeat_penalty,
                       "finite and above 0");
  }
  if (options.repeat_window < -1) {
    return OptionError("repeat_window", options.repeat_window,
                       "-1 (all), 0 (off) or a number of tokens");
  }
  if (!finite(options.frequency_penalty)) {
    return OptionError("frequency_penalty", options.frequency_penalty,
                       "finite");
  }
  if (!finite(options.presence_penalty)) {
    return OptionError("presence_penalty", options.presence_penalty, "finite");
  }
  return absl::OkStatus();
}

SamplerScratch::SamplerScratch(int32_t vocabulary_size)
    : penalized(vocabulary_size), counts(vocabulary_size, 0) {
  candidates.reserve(vocabulary_size);
}

absl::StatusOr<Sampler> Sampler::Create(
    const SamplingOptions& options, int32_t vocabulary_size,
    std::shared_ptr<SamplerScratch> scratch) {
  absl::Status valid = ValidateSampling(options);
  if (!valid.ok()) return valid;
  if (vocabulary_size <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot sample: vocabulary size: ", vocabulary_size,
                     ", must be above 0"));
  }
  if (scratch == nullptr) {
    scratch = std::make_shared<SamplerScratch>(vocabulary_size);
  }
  return Sampler(options, std::move(scratch));
}

Sampler::Sampler(const SamplingOptions& options,
                 std::shared_ptr<SamplerScratch> scratch)
    : options_(options),
      scratch_(std::move(scratch)),
      random_state_(options.seed) {}

absl::Status Sampler::CheckLogits(absl::Span<const float> logits) const {
  if (logits.size() != scratch_->penalized.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot sample: logits: ", logits.size(),
        " values for a vocabulary of ", scratch_->penalized.size()));
  }
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot sample: logit ", i,
                       ": is NaN, the model or its weights are broken"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const float>> Sampler::Penalize(
    absl::Span<const float> logits, absl::Span<const int32_t> history) {
  std::vector<float>& penalized = scratch_->penalized;
  std::vector<int32_t>& counts = scratch_->counts;
  absl::Status valid = CheckLogits(logits);
  if (!valid.ok()) return valid;
  size_t window = history.size();
  if (options_.repeat_window >= 0) {
    window = std::min<size_t>(window, options_.repeat_window);
  }
  if (options_.repeat_penalty == 1 && options_.frequency_penalty == 0 &&
      options_.presence_penalty == 0) {
    window = 0;
  }
  history = history.last(window);
  for (size_t i = 0; i < history.size(); ++i) {
    if (history[i] < 0 || history[i] >= static_cast<int64_t>(logits.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot sample: token ", history[i],
          " of the history: is outside the vocabulary of ", logits.size()));
    }
  }
  std::copy(logits.begin(), logits.end(), penalized.begin());
  for (const int32_t id : history) ++counts[id];
  for (const int32_t id : history) {
    if (counts[id] == 0) continue;  // done at an earlier occurrence
    double logit = penalized[id];
    logit = logit > 0 ? logit / options_.repeat_penalty
                      : logit * options_.repeat_penalty;
    logit -= static_cast<double>(options_.frequency_penalty) * counts[id];
    logit -= options_.presence_penalty;
    penalized[id] = static_cast<float>(logit);
    counts[id] = 0;
  }
  return absl::MakeConstSpan(penalized);
}

// Fills the candidates with all that can be drawn, by id.
void Sampler::KeepAll() {
  std::vector<Candidate>& candidates = scratch_->candidates;
  const std::vector<float>& penalized = scratch_->penalized;
  candidates.resize(penalized.size());
  size_t kept = 0;
  for (size_t id = 0; id < penalized.size(); ++id) {
    candidates[kept] = {static_cast<int32_t>(id), penalized[id], 0};
    kept += penalized[id] != -kInfinity;
  }
  candidates.resize(kept);
}

// Fills the candidates with the best k of the penalized logits, best first.
void Sampler::KeepTopK() {
  std::vector<Candidate>& candidates = scratch_->candidates;
  std::vector<float>& penalized = scratch_->penalized;
  const size_t k = options_.top_k;
  const int32_t size = static_cast<int32_t>(penalized.size());
  if (k > kMaxHeap) {
    KeepAll();
    if (candidates.size() > k) {
      std::nth_element(candidates.begin(), candidates.begin() + (k - 1),
                       candidates.end(), Better);
      candidates.resize(k);
    }
    std::sort(candidates.begin(), candidates.end(), Better);
    return;
  }
  int32_t id = 0;
  for (; id < size && candidates.size() < k; ++id) {
    if (penalized[id] == -kInfinity) continue;
    candidates.push_back({id, penalized[id], 0});
    std::push_heap(candidates.begin(), candidates.end(), Better);
  }
  // The heap's front is its worst. A later equal has a higher id, so it loses.
  for (; id < size; ++id) {
    if (!(penalized[id] > candidates.front().logit)) continue;
    std::pop_heap(candidates.begin(), candidates.end(), Better);
    candidates.back() = {id, penalized[id], 0};
    std::push_heap(candidates.begin(), candidates.end(), Better);
  }
  std::sort_heap(candidates.begin(), candidates.end(), Better);
}

// Wants `probability` to hold weights. Leaves what it keeps best first.
void Sampler::KeepTopP() {
  std::vector<Candidate>& candidates = scratch_->candidates;
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.probability;
  const double wanted = total * options_.top_p;
  const bool is_sorted = options_.top_k > 0;
  double sum = 0;
  size_t kept = 0;
  size_t sorted = is_sorted ? candidates.size() : 0;
  while (kept < candidates.size()) {
    if (kept == sorted) {
      const auto begin = candidates.begin() + sorted;
      sorted = std::min(candidates.size(), std::max(kFirstSorted, sorted * 4));
      const auto end = candidates.begin() + sorted;
      if (end != candidates.end()) {
        std::nth_element(begin, end - 1, candidates.end(), Better);
      }
      std::sort(begin, end, Better);
    }
    sum += candidates[kept++].probability;
    if (sum >= wanted) break;
  }
  candidates.resize(kept);
}

void Sampler::KeepMinP(double best_weight) {
  std::vector<Candidate>& candidates = scratch_->candidates;
  const double least = best_weight * options_.min_p;
  candidates.erase(
      std::remove_if(candidates.begin(), candidates.end(),
                     [&](const Candidate& c) { return c.probability < least; }),
      candidates.end());
}

// Probabilities in terms of exp(logit - best), where a best of +inf leaves only
// its equals.
void Sampler::Weigh(float best, double temperature) {
  const absl::Span<Candidate> all = absl::MakeSpan(scratch_->candidates);
  if (best == kInfinity) {
    for (Candidate& c : all) c.probability = c.logit == kInfinity ? 1.0 : 0.0;
    return;
  }
  double weights[kWeighed];
  for (size_t begin = 0; begin < all.size(); begin += kWeighed) {
    const absl::Span<Candidate> block = all.subspan(begin, kWeighed);
    for (size_t i = 0; i < block.size(); ++i) {
      weights[i] = (static_cast<double>(block[i].logit) - best) / temperature;
    }
    Exponentials(absl::MakeSpan(weights, block.size()));
    for (size_t i = 0; i < block.size(); ++i) block[i].probability = weights[i];
  }
}

absl::StatusOr<absl::Span<const Candidate>> Sampler::Distribution(
    absl::Span<const float> logits, absl::Span<const int32_t> history) {
  std::vector<Candidate>& candidates = scratch_->candidates;
  candidates.clear();
  if (options_.temperature == 0) {
    absl::Status valid = CheckLogits(logits);
    if (!valid.ok()) return valid;
    // The first of several largest.
    const int64_t best = FirstLargest(logits);
    if (logits[best] == -kInfinity) return NothingToDraw();
    candidates.push_back({static_cast<int32_t>(best), logits[best], 1.0});
    return absl::MakeConstSpan(candidates);
  }

  const auto penalized = Penalize(logits, history);
  if (!penalized.ok()) return penalized.status();
  if (options_.top_k > 0) {
    KeepTopK();
  } else {
    KeepAll();
  }
  if (candidates.empty()) return NothingToDraw();

  const float best = options_.top_k > 0
                         ? candidates.front().logit
                         : (*penalized)[FirstLargest(*penalized)];
  if (options_.top_p < 1 || options_.min_p > 0) Weigh(best, 1.0);
  if (options_.top_p < 1) KeepTopP();
  if (options_.min_p > 0) KeepMinP(/*best_weight=*/1.0);

  Weigh(best, options_.temperature);
  // Partial sums, since one addition would wait for the other.
  double sums[4] = {};
  for (size_t i = 0; i < candidates.size(); ++i) {
    sums[i % 4] += candidates[i].probability;
  }
  const double share = 1 / ((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (Candidate& c : candidates) c.probability *= share;
  return absl::MakeConstSpan(candidates);
}

absl::StatusOr<int32_t> Sampler::Sample(absl::Span<const float> logits,
                                        absl::Span<const int32_t> history) {
  const auto distribution = Distribution(logits, history);
  if (!distribution.ok()) return distribution.status();
  const double point = NextUniform();
  double sum = 0;
  int32_t drawn = 0;
  // Where rounding leaves the sum just below the point, the last that can be.
  for (const Candidate& candidate : *distribution) {
    if (candidate.probability == 0) continue;
    drawn = candidate.id;
    sum += candidate.probability;
    if (sum > point) break;
  }
  return drawn;
}

// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators", 2014); the upper 53 bits as a fraction in [0, 1).
double Sampler::NextUniform() {
  uint64_t z = (random_state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

absl::StatusOr<double> LogProbability(absl::Span<const float> logits,
                                      int32_t id) {
  if (id < 0 || id >= static_cast<int64_t>(logits.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("no log-probability: token ", id,
                     ": is outside the vocabulary of ", logits.size()));
  }
  const auto softmax = LogSoftmax::Of(logits);
  if (!softmax.ok()) return softmax.status();
  return softmax->At(id);
}

}  // namespace weft
