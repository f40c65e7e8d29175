#include "runtime/generation/token_chooser.h"

#include <algorithm>
#include <limits>

#include "base/status.h"
#include "runtime/generation/logprobs.h"

namespace weft {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool Contains(absl::Span<const int32_t> ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

ChooserScratch::ChooserScratch(int32_t vocabulary_size)
    : sampler(std::make_shared<SamplerScratch>(vocabulary_size)),
      logits(vocabulary_size),
      mask(MaskWords(vocabulary_size)) {}

absl::StatusOr<TokenChooser> TokenChooser::Create(
    const Request* request, int choice,
    std::unique_ptr<TokenConstraint> constraint,
    absl::Span<const int32_t> end_tokens, const ChooserScratch& scratch) {
  SamplingOptions sampling = request->sampling;
  sampling.seed = ChoiceSeed(sampling.seed, choice);
  WEFT_ASSIGN_OR_RETURN(
      Sampler sampler,
      Sampler::Create(sampling, static_cast<int32_t>(scratch.logits.size()),
                      scratch.sampler));
  return TokenChooser(request, std::move(constraint), end_tokens,
                      std::move(sampler));
}

bool TokenChooser::Ends(int32_t token, FinishReason* reason) const {
  if (Contains(request_->stop_tokens, token)) {
    *reason = FinishReason::kStopToken;
    return true;
  }
  if ((request_->stop_at_end_of_text || constraint_ != nullptr) &&
      Contains(end_tokens_, token)) {
    *reason = FinishReason::kEndOfText;
    return true;
  }
  return false;
}

// Unless nothing else is left, as at the end of what a constraint allows.
void TokenChooser::ForbidEnd(absl::Span<float> logits,
                             bool stop_tokens_too) const {
  FinishReason reason;
  bool others = false;
  for (size_t id = 0; id < logits.size() && !others; ++id) {
    others =
        logits[id] != -kInfinity && !Ends(static_cast<int32_t>(id), &reason);
  }
  if (!others) return;
  if (stop_tokens_too) {
    for (const int32_t id : request_->stop_tokens) logits[id] = -kInfinity;
  }
  if (!request_->stop_at_end_of_text && constraint_ == nullptr) return;
  for (const int32_t id : end_tokens_) logits[id] = -kInfinity;
}

absl::Status TokenChooser::ApplyConstraint(absl::Span<float> logits,
                                           std::vector<uint64_t>* mask) {
  WEFT_RETURN_IF_ERROR(constraint_->Mask(absl::MakeSpan(*mask)));
  for (size_t word = 0; word < mask->size(); ++word) {
    const uint64_t bits = (*mask)[word];
    if (bits == ~uint64_t{0}) continue;
    const size_t begin = word * 64;
    const size_t end = std::min(begin + 64, logits.size());
    for (size_t id = begin; id < end; ++id) {
      if ((bits >> (id - begin) & 1) == 0) logits[id] = -kInfinity;
    }
  }
  return absl::OkStatus();
}

absl::Status TokenChooser::Choose(absl::Span<const float> logits,
                                  absl::Span<const int32_t> history,
                                  int64_t generated, ChooserScratch* scratch,
                                  GeneratedToken* token) {
  const absl::Span<const float> raw = logits;
  const bool may_not_end = generated < request_->min_tokens;
  // No constraint goes on behind an end of text: it is put off instead.
  const bool puts_end_off =
      constraint_ != nullptr && !request_->stop_at_end_of_text;
  if (!request_->logit_bias.empty() || constraint_ != nullptr || may_not_end) {
    const absl::Span<float> changed = absl::MakeSpan(scratch->logits);
    std::copy(raw.begin(), raw.end(), changed.begin());
    for (const auto& [id, bias] : request_->logit_bias) changed[id] += bias;
    if (constraint_ != nullptr) {
      absl::Status s = ApplyConstraint(changed, &scratch->mask);
      if (!s.ok()) return s;
    }
    if (may_not_end || puts_end_off) ForbidEnd(changed, may_not_end);
    logits = changed;
  }
  sampler_.SetScratch(scratch->sampler);
  WEFT_ASSIGN_OR_RETURN(const int32_t id, sampler_.Sample(logits, history));
  token->id = id;
  if (request_->logprobs < 0) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const LogSoftmax softmax, LogSoftmax::Of(raw));
  token->logprob = softmax.At(id);
  softmax.Top(request_->logprobs, &token->top);
  return absl::OkStatus();
}

absl::Status TokenChooser::Accept(int32_t token) {
  return constraint_ == nullptr ? absl::OkStatus() : constraint_->Accept(token);
}

}  // namespace weft
