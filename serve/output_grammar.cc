#include "serve/output_grammar.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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
    const char* field,
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

void RenameReferences(const std::string& from, const std::string& to,
                      Term* term) {
  if (term->kind == Term::kReference && term->name == from) term->name = to;
  for (Term& part : term->parts) RenameReferences(from, to, &part);
}

// The same between two literals.
Syntax Between(const std::string& before, Syntax inner,
               const std::string& after) {
  const std::string name = "between";
  for (grammar::Rule& rule : inner.rules) {
    if (rule.name == "root") rule.name = name;
    RenameReferences("root", name, &rule.term);
  }
  inner.rules.push_back({"root", grammar::Sequence({grammar::Literal(before),
                                                    grammar::Reference(name),
                                                    grammar::Literal(after)})});
  return inner;
}

}  // namespace

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
    ToolCustom custom, const json& tools, const std::string& name) {
  const bool tagged = custom == ToolCustom::kTagged;
  const char* arguments = tagged ? "arguments" : "parameters";
  json wanted = json::array();
  for (const json& tool : tools) {
    if (name.empty() || tool["function"]["name"] == name) {
      wanted.push_back(tool);
    }
  }
  const auto make = [&]() -> absl::StatusOr<Syntax> {
    json calls = json::array(), definitions = json::object();
    for (const json& tool : wanted) {
      const std::string key = absl::StrCat("call", calls.size());
      const std::string place = absl::StrCat("/$defs/", key);
      definitions[key] = CallSchema(tool, arguments, place);
      calls.push_back({{"$ref", absl::StrCat("#", place)}});
    }
    absl::StatusOr<Syntax> syntax = grammar::FromJsonSchema(
        {{"anyOf", std::move(calls)}, {"$defs", std::move(definitions)}});
    if (!syntax.ok() || !tagged) return syntax;
    return Between("<tool_call>\n", *std::move(syntax), "\n</tool_call>");
  };
  return OfField("tools", cache_.Of(arguments, wanted.dump(), make));
}

}  // namespace weft
