#include "serve/prompts.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "serve/api_error.h"
#include "serve/json_fields.h"

namespace weft {

absl::StatusOr<std::vector<int32_t>> EncodePrompt(
    const ServedModel& model, const Prompt& prompt, bool parse_special,
    const EncodeOptions& options) {
  if (prompt.is_tokens) return prompt.tokens;
  TextSegment segment;
  segment.text = prompt.text;
  segment.from_template = parse_special;
  return model.tokenizer().EncodeSegments({segment}, options);
}

// The prefix, the suffix, then the middle is written: the order of StarCoder,
// Qwen-Coder and most others ("PSM"; Bavarian et al. 2022, arXiv:2207.14255).
absl::StatusOr<std::vector<int32_t>> EncodeFill(const ServedModel& model,
                                                const Prompt& before,
                                                const std::string& suffix,
                                                const EncodeOptions& options) {
  const Tokenizer& tokenizer = model.tokenizer();
  if (tokenizer.fill_prefix() < 0 || tokenizer.fill_suffix() < 0 ||
      tokenizer.fill_middle() < 0) {
    return FieldError("suffix",
                      absl::StrCat(model.id,
                                   " has no tokens for filling in the "
                                   "middle"));
  }
  EncodeOptions part = options;
  part.add_special = false;
  Prompt after;
  after.text = suffix;
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> first,
                        EncodePrompt(model, before, false, part));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> last,
                        EncodePrompt(model, after, false, part));
  std::vector<int32_t> tokens;
  if (tokenizer.add_bos()) tokens.push_back(tokenizer.bos());
  tokens.push_back(tokenizer.fill_prefix());
  tokens.insert(tokens.end(), first.begin(), first.end());
  tokens.push_back(tokenizer.fill_suffix());
  tokens.insert(tokens.end(), last.begin(), last.end());
  tokens.push_back(tokenizer.fill_middle());
  return tokens;
}

EncodeOptions WhileClientIsThere(HttpCall* call) {
  EncodeOptions options;
  options.unwanted = [call] { return call->connection.PeerGone(); };
  return options;
}

absl::Status CheckPrompt(const ServedModel& model, const ServiceLimits& limits,
                         const std::vector<int32_t>& tokens, const char* field,
                         int64_t more) {
  const int64_t size = static_cast<int64_t>(tokens.size());
  if (size == 0) return FieldError(field, "has no tokens");
  for (const int32_t id : tokens) {
    if (!model.tokenizer().InRange(id)) {
      return FieldError(
          field, absl::StrCat(id, " is no token of this model, which has ",
                              model.tokenizer().vocabulary_size()));
    }
  }
  const int64_t capacity = model.capacity();
  if (size + more > capacity) {
    return ContextError(size, capacity,
                        model.engine().plan().model.context_length);
  }
  if (limits.prompt_tokens > 0 && size > limits.prompt_tokens) {
    return FieldError(
        field, absl::StrCat("has ", size, " tokens: at most ",
                            limits.prompt_tokens, " (--max-prompt-tokens)"));
  }
  return absl::OkStatus();
}

}  // namespace weft
