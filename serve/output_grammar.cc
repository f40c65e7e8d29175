#include "serve/output_grammar.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "serve/json_fields.h"
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

// References of a schema that now stands at `place` of a larger one.
void MoveReferences(const std::string& place, json* schema) {
  for (auto& entry : schema->items()) {
    json& value = entry.value();
    if (schema->is_object() && entry.key() == "$ref" && value.is_string() &&
        absl::StartsWith(value.get<std::string>(), "#")) {
      value = absl::StrCat("#", place, value.get<std::string>().substr(1));
    } else if (value.is_structured()) {
      MoveReferences(place, &value);
    }
  }
}

json CallSchema(const json& tool, const char* arguments,
                const std::string& place) {
  const json& function = tool["function"];
  json parameters = {{"type", "object"}};
  if (function.contains("parameters") && function["parameters"].is_object()) {
    parameters = function["parameters"];
    MoveReferences(absl::StrCat(place, "/properties/", arguments), &parameters);
  }
  return {{"type", "object"},
          {"properties",
           {{"name", {{"const", function["name"]}}}, {arguments, parameters}}},
          {"required", json::array({"name", arguments})},
          {"additionalProperties", false}};
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

// The same between two literals.
Syntax Between(const std::string& before, Syntax inner,
               const std::string& after) {
  Syntax made;
  Term middle = Include("between-", std::move(inner), &made);
  made.rules.push_back(
      {"root", grammar::Sequence({grammar::Literal(before), std::move(middle),
                                  grammar::Literal(after)})});
  return made;
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

bool IsStrict(const json& tools) {
  return absl::c_any_of(tools, [](const json& tool) {
    const json& function = tool["function"];
    return function.contains("strict") && function["strict"] == true;
  });
}

absl::StatusOr<Syntax> CallSyntax(ToolCustom custom, const json& wanted) {
  const bool tagged = custom == ToolCustom::kTagged;
  const char* arguments = tagged ? "arguments" : "parameters";
  json calls = json::array(), definitions = json::object();
  for (const json& tool : wanted) {
    const std::string key = absl::StrCat("call", calls.size());
    const std::string place = absl::StrCat("/$defs/", key);
    definitions[key] = CallSchema(tool, arguments, place);
    calls.push_back({{"$ref", absl::StrCat("#", place)}});
  }
  grammar::SchemaOptions options;
  options.strict = IsStrict(wanted);
  absl::StatusOr<Syntax> syntax = grammar::FromJsonSchema(
      {{"anyOf", std::move(calls)}, {"$defs", std::move(definitions)}},
      options);
  if (!syntax.ok() || !tagged) return syntax;
  return Between("<tool_call>\n", *std::move(syntax), "\n</tool_call>");
}

grammar::SchemaOptions OptionsOf(const GenerationFields& fields) {
  grammar::SchemaOptions options;
  options.strict = fields.strict_schema;
  options.open = fields.open_schema;
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenConstraint>> OutputGrammars::ForFormat(
    const GenerationFields& fields, std::vector<std::string>* dropped) {
  const std::string& field = fields.format_field;
  switch (fields.format) {
    case OutputFormat::kText:
      return std::unique_ptr<TokenConstraint>();
    case OutputFormat::kJson:
      return OfField(field, cache_.OfAnyJson());
    case OutputFormat::kJsonSchema:
      return OfField(field, cache_.OfJsonSchema(fields.format_source,
                                                OptionsOf(fields), dropped));
    case OutputFormat::kGrammar:
      return OfField(field, cache_.OfGrammar(fields.format_source));
    case OutputFormat::kRegex:
      return OfField(field, cache_.OfPattern(fields.format_source));
  }
  return absl::InternalError("no such format");
}

absl::StatusOr<std::unique_ptr<TokenConstraint>> OutputGrammars::ForToolCall(
    ToolCustom custom, const json& tools, const std::string& name,
    std::vector<std::string>* dropped) {
  const json wanted = Wanted(tools, name);
  return OfField(
      "tools",
      cache_.Of(
          custom == ToolCustom::kTagged ? "tagged" : "bare", wanted.dump(),
          [&] { return CallSyntax(custom, wanted); }, dropped));
}

absl::StatusOr<std::unique_ptr<TokenConstraint>>
OutputGrammars::ForCallOrFormat(ToolCustom custom, const json& tools,
                                const GenerationFields& fields,
                                std::vector<std::string>* dropped) {
  const auto make = [&]() -> absl::StatusOr<Syntax> {
    absl::StatusOr<Syntax> call = CallSyntax(custom, tools);
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
  auto made = cache_.Of(custom == ToolCustom::kTagged ? "tagged or" : "bare or",
                        source, make, dropped);
  return !made.ok() && !ErrorParam(made.status()).empty()
             ? std::move(made)
             : OfField(fields.format_field, std::move(made));
}

}  // namespace weft
