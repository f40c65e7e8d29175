#include "runtime/generation/request_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weft {
namespace {

template <typename Value>
absl::Status FieldError(absl::string_view field, Value value,
                        absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(
      "invalid request: ", field, ": ", value, ", must be ", allowed));
}

absl::Status CheckId(absl::string_view field, int32_t id,
                     int32_t vocabulary_size) {
  if (id >= 0 && id < vocabulary_size) return absl::OkStatus();
  return FieldError(
      field, id,
      absl::StrCat("a token of the vocabulary, below ", vocabulary_size));
}

absl::Status CheckKind(const Request& request, const ModelInfo& model) {
  if (request.embed == model.generates()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "invalid request: embed: ", model.architecture,
        model.generates()
            ? " writes text and has no vectors to give"
            : " gives vectors and generates nothing: ask for one"));
  }
  if (request.embed && !model.encoder && model.RowOfText(2) != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "invalid request: embed: other than the last token of ",
        model.architecture, " is not supported here: weft eval gives it"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRequest(const Request& request, const ModelInfo& model,
                          int64_t capacity) {
  WEFT_RETURN_IF_ERROR(CheckKind(request, model));
  const int32_t vocabulary_size = static_cast<int32_t>(model.vocabulary_size);
  const int64_t prompt = static_cast<int64_t>(request.prompt_tokens.size());
  if (prompt == 0) {
    return absl::InvalidArgumentError(
        "invalid request: prompt_tokens: none: this vocabulary may add no BOS, "
        "give a text");
  }
  if (prompt > capacity) {
    return absl::OutOfRangeError(absl::StrCat(
        "prompt is too long: ", prompt, " tokens: the context has ", capacity,
        " positions: shorten it",
        // A context that the model does not allow is no advice.
        capacity < model.context_length ? " or choose a larger context" : ""));
  }
  for (const int32_t id : request.prompt_tokens) {
    absl::Status s = CheckId("prompt_tokens", id, vocabulary_size);
    if (!s.ok()) return s;
  }
  if (request.min_tokens < 0) {
    return FieldError("min_tokens", request.min_tokens, "0 or above");
  }
  if (request.max_tokens >= 0 && request.min_tokens > request.max_tokens) {
    return FieldError("min_tokens", request.min_tokens,
                      absl::StrCat("at most max_tokens, ", request.max_tokens));
  }
  const int most_choices = request.embed ? 1 : kMaxChoices;
  if (request.choices < 1 || request.choices > most_choices) {
    return FieldError("choices", request.choices,
                      absl::StrCat("1 to ", most_choices));
  }
  if (request.shift_keep < 0) {
    return FieldError("shift_keep", request.shift_keep, "0 or above");
  }
  if (request.logprobs > kMaxTopLogprobs) {
    return FieldError("logprobs", request.logprobs,
                      absl::StrCat("at most ", kMaxTopLogprobs));
  }
  if (request.prompt_logprobs > kMaxTopLogprobs) {
    return FieldError("prompt_logprobs", request.prompt_logprobs,
                      absl::StrCat("at most ", kMaxTopLogprobs));
  }
  if (static_cast<int64_t>(request.logit_bias.size()) > vocabulary_size) {
    return FieldError("logit_bias", request.logit_bias.size(),
                      "at most one entry for each token");
  }
  for (const auto& [id, bias] : request.logit_bias) {
    WEFT_RETURN_IF_ERROR(CheckId("logit_bias", id, vocabulary_size));
    // +infinity added to a logit of -infinity would be no number.
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity()) {
      return FieldError("logit_bias", bias, "a number or -infinity");
    }
  }
  if (request.stop_strings.size() > kMaxStopStrings) {
    return FieldError("stop_strings", request.stop_strings.size(),
                      absl::StrCat("at most ", kMaxStopStrings));
  }
  for (const std::string& text : request.stop_strings) {
    if (text.empty() || text.size() > kMaxStopBytes) {
      return FieldError("stop_strings", absl::StrCat(text.size(), " bytes"),
                        absl::StrCat("1 to ", kMaxStopBytes, " bytes each"));
    }
  }
  if (request.stop_tokens.size() > kMaxStopStrings) {
    return FieldError("stop_tokens", request.stop_tokens.size(),
                      absl::StrCat("at most ", kMaxStopStrings));
  }
  for (const int32_t id : request.stop_tokens) {
    WEFT_RETURN_IF_ERROR(CheckId("stop_tokens", id, vocabulary_size));
  }
  if (!request.adapter_scales.empty() &&
      request.adapter_scales.size() != model.adapters.size()) {
    return FieldError("adapter_scales", request.adapter_scales.size(),
                      absl::StrCat("none, or one for each of the model's ",
                                   model.adapters.size(), " adapters"));
  }
  for (const float scale : request.adapter_scales) {
    if (!std::isfinite(scale)) {
      return FieldError("adapter_scales", scale, "finite numbers");
    }
  }
  return ValidateSampling(request.sampling);
}

std::vector<int32_t> EndTokens(const Tokenizer& tokenizer,
                               int32_t vocabulary_size) {
  std::vector<int32_t> ids;
  const int32_t size = std::min(vocabulary_size, tokenizer.vocabulary_size());
  for (int32_t id = 0; id < size; ++id) {
    if (tokenizer.IsEndOfGeneration(id)) ids.push_back(id);
  }
  return ids;
}

}  // namespace weft
