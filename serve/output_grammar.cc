#include "serve/output_grammar.h"

#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "serve/json_fields.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/json_schema.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;
using grammar::Syntax;
using grammar::Term;

constexpr size_t kKept = 32;
constexpr size_t kMostKeyBytes = 64 << 10;  // of what is worth keeping

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
      return Find("response_format", "json",
                  [] { return grammar::AnyJsonObject(); });
    case OutputFormat::kJsonSchema:
      return Find(
          "response_format", absl::StrCat("schema ", fields.format_source),
          [&] {
            return grammar::FromJsonSchema(json::parse(fields.format_source));
          });
    case OutputFormat::kGrammar:
      return Find("grammar", absl::StrCat("grammar ", fields.format_source),
                  [&] { return grammar::ParseGbnf(fields.format_source); });
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
  return Find(
      "tools", absl::StrCat("call ", arguments, " ", wanted.dump()),
      [&]() -> absl::StatusOr<Syntax> {
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
      });
}

absl::StatusOr<std::unique_ptr<TokenConstraint>> OutputGrammars::Find(
    const char* field, const std::string& key, const Maker& make) {
  std::shared_ptr<const grammar::TokenTrie> trie;
  {
    absl::MutexLock lock(&mutex_);
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
      if (kept->first != key) continue;
      kept_.splice(kept_.begin(), kept_, kept);
      return kept->second->NewConstraint();
    }
    if (trie_ == nullptr) {
      trie_ = std::make_shared<const grammar::TokenTrie>(*tokenizer_);
    }
    trie = trie_;
  }
  // Without the lock: two may make the same at once, and nobody waits for one
  // that is hard to make.
  const absl::StatusOr<Syntax> syntax = make();
  if (!syntax.ok()) return FieldError(field, syntax.status().message());
  const absl::StatusOr<std::shared_ptr<grammar::Grammar>> made =
      grammar::Grammar::Create(*syntax, trie);
  if (!made.ok()) return FieldError(field, made.status().message());
  std::unique_ptr<TokenConstraint> constraint = (*made)->NewConstraint();
  std::vector<uint64_t> mask(MaskWords(trie->vocabulary_size()));
  const absl::Status first = constraint->Mask(absl::MakeSpan(mask));
  if (!first.ok()) return FieldError(field, first.message());
  absl::MutexLock lock(&mutex_);
  if (key.size() <= kMostKeyBytes) kept_.emplace_front(key, *made);
  if (kept_.size() > kKept) kept_.pop_back();
  return constraint;
}

}  // namespace weft
