#include "serve/output_grammar.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "serve/json_fields.h"
#include "text/answer/call_grammar.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/syntax.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;
using grammar::Syntax;
using grammar::Term;

// What is wrong with a source is wrong with the field that it came in.
absl::StatusOr<std::unique_ptr<TokenConstraint>> OfField(
    const std::string& field,
    absl::StatusOr<std::unique_ptr<TokenConstraint>> constraint) {
  return absl::IsInvalidArgument(constraint.status())
             ? FieldError(field, constraint.status().message())
             : std::move(constraint);
}

void RenameReferences(const std::string& prefix, Term* term) {
  if (term->kind == Term::kReference) term->name = prefix + term->name;
  for (Term& part : term->parts) RenameReferences(prefix, &part);
}

// Adds the rules of `from`, with `prefix` before their names; what it begins
// with.
Term Include(const std::string& prefix, Syntax from, Syntax* to) {
  for (grammar::Rule& rule : from.rules) {
    RenameReferences(prefix, &rule.term);
    rule.name = prefix + rule.name;
    to->rules.push_back(std::move(rule));
  }
  to->dropped.insert(to->dropped.end(), from.dropped.begin(),
                     from.dropped.end());
  return grammar::Reference(prefix + "root");
}

// Calls of `name`, or of any tool when it is empty.
json Wanted(const json& tools, const std::string& name) {
  json wanted = json::array();
  for (const json& tool : tools) {
    if (name.empty() || tool["function"]["name"] == name) {
      wanted.push_back(tool);
    }
  }
  return wanted;
}

grammar::SchemaOptions OptionsOf(const GenerationFields& fields) {
  grammar::SchemaOptions options;
  options.strict = fields.strict_schema;
  options.open = fields.open_schema;
  return options;
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
    const GenerationFields& fields, const ConstraintAsker& asker) {
  const std::string& field = fields.format_field;
  switch (fields.format) {
    case OutputFormat::kText:
      return std::unique_ptr<TokenConstraint>();
    case OutputFormat::kJson:
      return OfField(field, cache_.OfAnyJson(asker));
    case OutputFormat::kJsonSchema:
      return OfField(field, cache_.OfJsonSchema(fields.format_source,
                                                OptionsOf(fields), asker));
    case OutputFormat::kGrammar:
      return OfField(field, cache_.OfGrammar(fields.format_source, asker));
    case OutputFormat::kRegex:
      return OfField(field, cache_.OfPattern(fields.format_source, asker));
  }
  return absl::InternalError("no such format");
}

absl::StatusOr<std::unique_ptr<TokenConstraint>> OutputGrammars::ForToolCall(
    const answer::CallForm& form, const json& tools, const std::string& name,
    const std::string& reasoning_close, const ConstraintAsker& asker) {
  const json wanted = Wanted(tools, name);
  // A model has one form.
  return OfField("tools",
                 cache_.Of(
                     absl::StrCat("call ", reasoning_close), wanted.dump(),
                     [&] {
                       return answer::CallGrammar(form, wanted, reasoning_close,
                                                  control_,
                                                  answer::AnyStrict(wanted));
                     },
                     asker));
}

absl::StatusOr<std::unique_ptr<TokenConstraint>>
OutputGrammars::ForCallOrFormat(const answer::CallForm& form, const json& tools,
                                const GenerationFields& fields,
                                const ConstraintAsker& asker) {
  const auto make = [&]() -> absl::StatusOr<Syntax> {
    absl::StatusOr<Syntax> call = answer::CallGrammar(form, tools, "", control_,
                                                      answer::AnyStrict(tools));
    if (!call.ok()) return FieldError("tools", call.status().message());
    Syntax format = grammar::AnyJsonObject();
    if (fields.format == OutputFormat::kJsonSchema) {
      WEFT_ASSIGN_OR_RETURN(
          format, grammar::FromJsonSchema(json::parse(fields.format_source),
                                          OptionsOf(fields)));
    }
    Syntax either;
    std::vector<Term> choices;
    choices.push_back(Include("call-", *std::move(call), &either));
    choices.push_back(Include("format-", std::move(format), &either));
    either.rules.push_back({"root", grammar::Choice(std::move(choices))});
    return either;
  };
  const std::string source =
      absl::StrCat(tools.dump(), " ", fields.strict_schema, fields.open_schema,
                   static_cast<int>(fields.format), " ", fields.format_source);
  auto made = cache_.Of("call or format", source, make, asker);
  return !made.ok() && !ErrorParam(made.status()).empty()
             ? std::move(made)
             : OfField(fields.format_field, std::move(made));
}

}  // namespace weft
