#include "serve/output_grammar.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "serve/json_fields.h"
#include "text/answer/call_grammar.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

// What is wrong with a source is wrong with the field that it came in.
absl::StatusOr<std::unique_ptr<TokenConstraint>> OfField(
    const char* field,
    absl::StatusOr<std::unique_ptr<TokenConstraint>> constraint) {
  return absl::IsInvalidArgument(constraint.status())
             ? FieldError(field, constraint.status().message())
             : std::move(constraint);
}

}  // namespace

OutputGrammars::OutputGrammars(const Tokenizer* tokenizer,
                               ConstraintCache::Limits limits,
                               const std::vector<int32_t>& control)
    : cache_(tokenizer, limits, control) {
  for (const int32_t id : control) {
    control_.emplace_back(tokenizer->TokenToBytes(id));
  }
}

absl::StatusOr<std::unique_ptr<TokenConstraint>> OutputGrammars::ForFormat(
    const GenerationFields& fields) {
  switch (fields.format) {
    case OutputFormat::kText:
      return std::unique_ptr<TokenConstraint>();
    case OutputFormat::kJson:
      return OfField("response_format", cache_.OfAnyJson());
    case OutputFormat::kJsonSchema:
      return OfField("response_format",
                     cache_.OfJsonSchema(fields.format_source));
    case OutputFormat::kGrammar:
      return OfField("grammar", cache_.OfGrammar(fields.format_source));
  }
  return absl::InternalError("no such format");
}

absl::StatusOr<std::unique_ptr<TokenConstraint>> OutputGrammars::ForToolCall(
    const answer::CallForm& form, const json& tools, const std::string& name,
    const std::string& reasoning_close) {
  json wanted = json::array();
  for (const json& tool : tools) {
    if (name.empty() || tool["function"]["name"] == name) {
      wanted.push_back(tool);
    }
  }
  // A model has one form.
  return OfField(
      "tools",
      cache_.Of(absl::StrCat("call ", reasoning_close), wanted.dump(), [&] {
        return answer::CallGrammar(form, wanted, reasoning_close, control_);
      }));
}

}  // namespace weft
