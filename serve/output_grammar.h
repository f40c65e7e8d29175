// What a text must look like, as constraints on tokens: response_format,
// grammar and forced calls of tools.
//
// What the fields of a request ask for, as sources that a ConstraintCache
// compiles and keeps. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/generation/constraint_cache.h"
#include "serve/openai_request.h"
#include "text/answer/forms.h"
#include "text/token_constraint.h"
#include "text/tokenizer.h"

namespace weft {

class OutputGrammars {
 public:
  // `tokenizer` must outlive it. `control`: control tokens that calls are
  // written with.
  OutputGrammars(const Tokenizer* tokenizer, ConstraintCache::Limits limits,
                 const std::vector<int32_t>& control = {});

  // Each tells in `asker.dropped` what of schemas is not kept: those that do
  // not ask to be taken strictly are kept as far as a grammar can. Errors name
  // the field of the request.

  // Null for text.
  absl::StatusOr<std::unique_ptr<TokenConstraint>> ForFormat(
      const GenerationFields& fields, const ConstraintAsker& asker);

  // One call of `name`, or of any of the tools when it is empty, in this form,
  // after the reasoning that is open where `reasoning_close` is not empty.
  absl::StatusOr<std::unique_ptr<TokenConstraint>> ForToolCall(
      const answer::CallForm& form, const nlohmann::ordered_json& tools,
      const std::string& name, const std::string& reasoning_close,
      const ConstraintAsker& asker);

  // A call of any of the tools, or JSON as the fields ask for it.
  absl::StatusOr<std::unique_ptr<TokenConstraint>> ForCallOrFormat(
      const answer::CallForm& form, const nlohmann::ordered_json& tools,
      const GenerationFields& fields, const ConstraintAsker& asker);

 private:
  std::vector<std::string> control_;  // as text
  ConstraintCache cache_;
};

}  // namespace weft
