#include "text/answer/call_grammar.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/token_trie.h"
#include "text/printable.h"
#include "text/utf8.h"

namespace weft::answer {
namespace {

using grammar::Choice;
using grammar::Class;
using grammar::Literal;
using grammar::Optional;
using grammar::Reference;
using grammar::Repeat;
using grammar::Sequence;
using grammar::Syntax;
using grammar::Term;
using json = nlohmann::ordered_json;

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

// Of a key in a JSON pointer.
std::string PointerKey(const std::string& key) {
  return absl::StrReplaceAll(key, {{"~", "~0"}, {"/", "~1"}});
}

void PrefixReferences(const std::string& prefix, Term* term) {
  if (term->kind == Term::kReference) term->name = prefix + term->name;
  for (Term& part : term->parts) PrefixReferences(prefix, &part);
}

// A function without parameters has none, as OpenAI's reference says; not any.
json ParametersOf(const json& function) {
  const auto found = function.find("parameters");
  if (found != function.end() && found->is_object()) return *found;
  return {{"type", "object"},
          {"properties", json::object()},
          {"additionalProperties", false}};
}

class Builder {
 public:
  Builder(const CallForm& form, const std::vector<std::string>& control,
          bool strict)
      : form_(form), control_(control), strict_(strict) {}

  absl::StatusOr<Syntax> Run(const json& tools,
                             const std::string& reasoning_close) {
    std::vector<Term> calls;
    for (const json& tool : tools) {
      WEFT_ASSIGN_OR_RETURN(Term call, Call(tool["function"]));
      calls.push_back(std::move(call));
    }
    std::vector<Term> parts;
    if (!reasoning_close.empty()) {
      parts.push_back(Until(reasoning_close));
      parts.push_back(Line());
    }
    const bool json_body = form_.body == CallBody::kJson;
    const bool bracketed = json_body || form_.body == CallBody::kPython;
    // The inner marker alone tells a call without markers.
    const bool section = !form_.section_open.empty() &&
                         !form_.call_open.empty() &&
                         form_.body != CallBody::kHarmony;
    if (section) parts.push_back(Around(form_.section_open, true));
    if (bracketed) parts.push_back(Around(form_.call_open, true));
    if (bracketed && form_.list) parts.push_back(Literal("["));
    parts.push_back(Choice(std::move(calls)));
    if (bracketed && form_.list) parts.push_back(Literal("]"));
    if (bracketed) parts.push_back(Around(form_.call_close, false));
    if (section) parts.push_back(Around(form_.section_close, false));
    syntax_.rules.push_back({"root", Sequence(std::move(parts))});
    return std::move(syntax_);
  }

 private:
  // Markers may stand in lines of their own.
  static Term Line() { return Optional(Literal("\n")); }
  Term Around(const std::string& marker, bool opens) const {
    if (marker.empty()) return Sequence({});
    return opens ? Sequence({Marker(marker), Line()})
                 : Sequence({Line(), Marker(marker)});
  }

  // Markers, and what stands between them: control tokens are meant as such.
  Term Marker(const std::string& text) const {
    std::string bytes;
    for (size_t at = 0; at < text.size();) {
      size_t longest = 0;
      for (const std::string& token : control_) {
        if (token.size() > longest &&
            text.compare(at, token.size(), token) == 0) {
          longest = token.size();
        }
      }
      if (longest > 0) bytes += grammar::TokenTrie::kControl;
      longest = std::max<size_t>(longest, 1);
      bytes.append(text, at, longest);
      at += longest;
    }
    return Literal(bytes);
  }

  absl::StatusOr<Term> Schema(const json& schema) {
    grammar::SchemaOptions options;
    options.strict = strict_;
    WEFT_ASSIGN_OR_RETURN(Syntax part,
                          grammar::FromJsonSchema(schema, options));
    syntax_.dropped.insert(syntax_.dropped.end(), part.dropped.begin(),
                           part.dropped.end());
    const std::string prefix = absl::StrCat("part", parts_++, "-");
    for (grammar::Rule& rule : part.rules) {
      PrefixReferences(prefix, &rule.term);
      syntax_.rules.push_back({prefix + rule.name, std::move(rule.term)});
    }
    return Reference(prefix + "root");
  }

  // Any text up to and with the first `marker`: Knuth, Morris and Pratt's
  // automaton, a rule for each state.
  Term Until(const std::string& marker) {
    const Term close = Marker(marker);
    if (close.bytes != marker) {
      // No text can be taken for a token.
      return Sequence({Repeat(Class({}, /*negated=*/true), 0), close});
    }
    std::vector<uint32_t> signs;
    for (size_t at = 0; at < marker.size();) {
      const Utf8Unit unit = Utf8UnitAt(marker, at);
      signs.push_back(
          CodePointOf(absl::string_view(marker).substr(at, unit.bytes)));
      at += unit.bytes;
    }
    std::vector<grammar::CodePoints> known;
    for (const uint32_t sign : signs) {
      if (std::none_of(known.begin(), known.end(), [&](const auto& range) {
            return range.first == sign;
          })) {
        known.push_back({sign, sign});
      }
    }
    const std::string prefix = absl::StrCat("until", parts_++, "-");
    for (size_t state = 0; state < signs.size(); ++state) {
      // First the one that leads on.
      std::stable_partition(known.begin(), known.end(), [&](const auto& range) {
        return range.first == signs[state];
      });
      std::vector<Term> ways;
      for (const grammar::CodePoints& range : known) {
        std::vector<uint32_t> seen(signs.begin(), signs.begin() + state);
        seen.push_back(range.first);
        size_t next = seen.size();
        while (next > 0 &&
               !std::equal(seen.end() - next, seen.end(), signs.begin())) {
          --next;
        }
        std::vector<Term> way = {Class({range})};
        if (next < signs.size()) {
          way.push_back(Reference(absl::StrCat(prefix, next)));
        }
        ways.push_back(Sequence(std::move(way)));
      }
      ways.push_back(Sequence({Class(known, /*negated=*/true),
                               Reference(absl::StrCat(prefix, 0))}));
      syntax_.rules.push_back(
          {absl::StrCat(prefix, state), Choice(std::move(ways))});
    }
    return Reference(absl::StrCat(prefix, 0));
  }

  absl::StatusOr<Term> Call(const json& function) {
    const std::string name = function["name"].get<std::string>();
    switch (form_.body) {
      case CallBody::kJson:
        return JsonCall(name, function);
      case CallBody::kNamed:
      case CallBody::kHarmony: {
        WEFT_ASSIGN_OR_RETURN(Term arguments, Schema(ParametersOf(function)));
        const bool harmony = form_.body == CallBody::kHarmony;
        return Sequence(
            {harmony ? Marker(absl::StrCat(
                           form_.call_open, "commentary to=", form_.name_prefix,
                           name, " <|constrain|>json", form_.name_close))
                     : Name(name),
             harmony ? Sequence({}) : Line(), std::move(arguments),
             harmony ? Sequence({}) : Around(form_.call_close, false)});
      }
      case CallBody::kParameters:
        return Members(function, Name(name), form_.call_close);
      case CallBody::kPython:
        return Members(function, Literal(name + "("), ")");
      case CallBody::kBraces:
        return Members(
            function,
            Marker(absl::StrCat(form_.call_open, form_.name_prefix, name, "{")),
            "}" + form_.call_close);
    }
    return absl::InternalError("no such form");
  }

  absl::StatusOr<Term> JsonCall(const std::string& name, const json& function) {
    json properties = json::object(), required = json::array();
    const std::string key = form_.name_key.empty() ? name : form_.arguments_key;
    json parameters = ParametersOf(function);
    MoveReferences(absl::StrCat("/properties/", PointerKey(key)), &parameters);
    if (!form_.name_key.empty()) {
      properties[form_.name_key] = {{"const", name}};
      required.push_back(form_.name_key);
    }
    properties[key] = std::move(parameters);
    required.push_back(key);
    return Schema({{"type", "object"},
                   {"properties", std::move(properties)},
                   {"required", std::move(required)},
                   {"additionalProperties", false}});
  }

  Term Name(const std::string& name) const {
    std::string text = form_.call_open;
    if (!form_.id_close.empty()) absl::StrAppend(&text, "0", form_.id_close);
    absl::StrAppend(&text, form_.name_prefix, name, form_.numbered ? ":0" : "",
                    form_.name_close);
    if (!form_.attributes_close.empty() &&
        !absl::EndsWith(form_.name_close, form_.attributes_close)) {
      text += form_.attributes_close;
    }
    return Marker(text);
  }

  // Parameters one by one, in the order of the schema.
  absl::StatusOr<Term> Members(const json& function, Term open,
                               const std::string& close) {
    json parameters = ParametersOf(function);
    MoveReferences("/$defs/parameters", &parameters);
    const json none = json::object();
    const auto found = parameters.find("properties");
    const json& properties =
        found != parameters.end() && found->is_object() ? *found : none;
    std::vector<std::pair<Term, bool>> members;  // and whether it must be
    const auto required = parameters.find("required");
    for (const auto& [key, schema] : properties.items()) {
      WEFT_ASSIGN_OR_RETURN(Term member, Member(key, schema, parameters));
      members.emplace_back(
          std::move(member),
          required != parameters.end() && required->is_array() &&
              std::find(required->begin(), required->end(), key) !=
                  required->end());
    }
    const bool lines = form_.body == CallBody::kParameters;
    std::vector<Term> parts = {std::move(open)};
    if (lines) parts.push_back(Line());
    parts.push_back(lines ? Row(std::move(members))
                          : Listed(std::move(members)));
    if (lines) parts.push_back(Line());
    parts.push_back(Marker(close));
    return Sequence(std::move(parts));
  }

  static Term Row(std::vector<std::pair<Term, bool>> members) {
    std::vector<Term> parts;
    for (auto& [member, must] : members) {
      Term whole = Sequence({std::move(member), Line()});
      parts.push_back(must ? std::move(whole) : Optional(std::move(whole)));
    }
    return Sequence(std::move(parts));
  }

  // With commas between those that are there: one rule for what may follow
  // nothing, one for what follows something.
  Term Listed(std::vector<std::pair<Term, bool>> members) {
    const char* const comma = form_.body == CallBody::kPython ? ", " : ",";
    const std::string prefix = absl::StrCat("list", parts_++, "-");
    for (const bool first : {true, false}) {
      const auto rule = [&](bool is_first, size_t i) {
        return absl::StrCat(prefix, is_first ? "first" : "next", i);
      };
      for (size_t i = 0; i <= members.size(); ++i) {
        if (i == members.size()) {
          syntax_.rules.push_back({rule(first, i), Sequence({})});
          continue;
        }
        std::vector<Term> ways = {
            Sequence({first ? Sequence({}) : Literal(comma), members[i].first,
                      Reference(rule(false, i + 1))})};
        if (!members[i].second) ways.push_back(Reference(rule(first, i + 1)));
        syntax_.rules.push_back({rule(first, i), Choice(std::move(ways))});
      }
    }
    return Reference(prefix + "first0");
  }

  // As the reader has it (parameters.cc).
  static bool IsText(const json& schema) {
    const auto is_string = [](const json& value) { return value.is_string(); };
    if (const auto type = schema.find("type"); type != schema.end()) {
      return *type == "string";
    }
    if (const auto names = schema.find("enum");
        names != schema.end() && names->is_array() && !names->empty()) {
      return std::all_of(names->begin(), names->end(), is_string);
    }
    const auto value = schema.find("const");
    return value != schema.end() && value->is_string();
  }

  absl::StatusOr<Term> Member(const std::string& key, const json& schema,
                              const json& parameters) {
    const bool text = schema.is_object() && IsText(schema);
    json whole = {{"$ref", absl::StrCat("#/$defs/parameters/properties/",
                                        PointerKey(key))},
                  {"$defs", {{"parameters", parameters}}}};
    if (form_.body == CallBody::kPython) {
      WEFT_ASSIGN_OR_RETURN(Term value, Schema(whole));
      return Sequence({Literal(key + "="), std::move(value)});
    }
    if (form_.body == CallBody::kBraces) {
      if (text) {
        return Sequence({Marker(absl::StrCat(key, ":", form_.quote)),
                         Text(schema, form_.quote)});
      }
      WEFT_ASSIGN_OR_RETURN(Term value, Schema(whole));
      return Sequence({Literal(key + ":"), std::move(value)});
    }
    std::string open = absl::StrCat(form_.parameter_open, key, form_.key_close);
    if (!form_.attributes_close.empty()) {
      absl::StrAppend(&open, form_.written_attributes[text ? 0 : 1],
                      form_.attributes_close);
    }
    const std::string close =
        absl::StrReplaceAll(form_.value_close, {{"\1", key}});
    const char* const line = form_.value_lines ? "\n" : "";
    Term opening = Sequence({Marker(open),
                             form_.value_open.empty() ? Sequence({}) : Line(),
                             Marker(form_.value_open + line)});
    if (text) {
      return Sequence({std::move(opening), Text(schema, line + close)});
    }
    WEFT_ASSIGN_OR_RETURN(Term value, Schema(whole));
    return Sequence(
        {std::move(opening), std::move(value), Marker(line + close)});
  }

  // A string as it is, and what closes it.
  Term Text(const json& schema, const std::string& close) {
    std::vector<Term> values;
    if (const auto found = schema.find("enum");
        found != schema.end() && found->is_array()) {
      for (const json& value : *found) {
        if (value.is_string()) {
          values.push_back(Literal(value.get<std::string>()));
        }
      }
    }
    if (const auto found = schema.find("const");
        found != schema.end() && found->is_string()) {
      values = {Literal(found->get<std::string>())};
    }
    if (values.empty()) return Until(close);
    return Sequence({Choice(std::move(values)), Marker(close)});
  }

  const CallForm& form_;
  const std::vector<std::string>& control_;
  const bool strict_;
  Syntax syntax_;
  int parts_ = 0;
};

}  // namespace

absl::StatusOr<Syntax> CallGrammar(const CallForm& form, const json& tools,
                                   const std::string& reasoning_close,
                                   const std::vector<std::string>& control,
                                   bool strict) {
  return Builder(form, control, strict).Run(tools, reasoning_close);
}

}  // namespace weft::answer
