#include "text/answer/call_grammar.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "text/answer/plain_text.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/pattern.h"
#include "text/grammar/rule_properties.h"
#include "text/grammar/string_language.h"
#include "text/grammar/token_trie.h"

namespace weft::answer {
namespace {

// The type of what stands among tools and is none (OrText).
constexpr char kText[] = "text";

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
    std::vector<std::string> names;
    must_call_ = std::none_of(tools.begin(), tools.end(), IsText);
    for (const json& tool : tools) {
      if (IsText(tool)) continue;
      WEFT_ASSIGN_OR_RETURN(Term call, Call(tool["function"]));
      calls.push_back(std::move(call));
      names.push_back(tool["function"]["name"]);
    }
    const Term call = Rule("call", Choice(std::move(calls)));
    Term root;
    if (must_call_) {
      const Term reasoning = reasoning_close.empty()
                                 ? Sequence({})
                                 : Sequence({Until(reasoning_close), Line()});
      root = Sequence({reasoning, Calls(call, true)});
    } else if (form_.body == CallBody::kHarmony) {
      WEFT_ASSIGN_OR_RETURN(root, Messages(call));
    } else {
      WEFT_ASSIGN_OR_RETURN(root, TextAndCalls(call, names, reasoning_close));
    }
    syntax_.rules.push_back({"root", std::move(root)});
    // Ways that a form does not have.
    if (!grammar::LeaveOutImpossible(&syntax_)) {
      return absl::InternalError("a form that allows nothing");
    }
    return std::move(syntax_);
  }

  static bool IsText(const json& tool) {
    const auto type = tool.find("type");
    return type != tool.end() && *type == kText;
  }

 private:
  Term Rule(const std::string& name, Term term) {
    syntax_.rules.push_back({name, std::move(term)});
    return Reference(name);
  }

  // Calls with what opens and closes them: one, or as many as come. The inner
  // marker alone tells a call without markers.
  Term Calls(const Term& call, bool with_section) const {
    const bool bracketed =
        form_.body == CallBody::kJson || form_.body == CallBody::kPython;
    const bool section = with_section && !form_.section_open.empty() &&
                         !form_.call_open.empty() &&
                         form_.body != CallBody::kHarmony;
    Term inside = call;
    if (bracketed) {
      if (form_.list) {
        inside = Sequence(
            {Literal("["), Several(call, Literal(", ")), Literal("]")});
      }
      inside = Sequence({Around(form_.call_open, true), std::move(inside),
                         Around(form_.call_close, false)});
    }
    if (!section) return inside;
    return Sequence({Around(form_.section_open, true), Several(inside, Line()),
                     Around(form_.section_close, false)});
  }

  Term Several(const Term& part, Term between) const {
    if (must_call_) return part;
    return Sequence({part, Repeat(Sequence({std::move(between), part}), 0)});
  }

  // ---- text in which there may be calls

  // Text, and markers that are no calls'.
  absl::StatusOr<Term> Text(const std::vector<std::string>& names,
                            TextPlace place) const {
    WEFT_ASSIGN_OR_RETURN(const grammar::StringLanguage first,
                          PlainText(form_, names, place));
    WEFT_ASSIGN_OR_RETURN(const grammar::StringLanguage more,
                          PlainText(form_, names, TextPlace::kElsewhere));
    std::vector<Term> markers;
    for (const ReasoningForm& form : ReasoningForms()) {
      for (const std::string& marker :
           {form.open, form.close, form.content_open, form.content_close}) {
        if (IsControl(marker)) markers.push_back(Marker(marker));
      }
    }
    if (!form_.content_name.empty()) {
      markers.push_back(Marker(
          absl::StrCat(form_.call_open, form_.content_name, form_.name_close)));
    }
    return Sequence(
        {first.Texts(),
         Repeat(Sequence({Choice(std::move(markers)), more.Texts()}), 0)});
  }

  absl::StatusOr<Term> TextAndCalls(const Term& call,
                                    const std::vector<std::string>& names,
                                    const std::string& reasoning_close) {
    WEFT_ASSIGN_OR_RETURN(Term begin, Text(names, TextPlace::kBegin));
    WEFT_ASSIGN_OR_RETURN(Term text, Text(names, TextPlace::kBehindCall));
    text = Rule("text", std::move(text));
    std::vector<Term> marked = {Calls(call, true)};
    Term bare = Choice({});
    if (form_.call_open.empty()) {
      // Only where the answer begins, or behind a marker.
      marked = {Choice({})};
      bare = Calls(call, false);
      if (!form_.section_open.empty()) {
        marked = {Sequence({Around(form_.section_open, true), bare,
                            Around(form_.section_close, false)})};
      }
    } else if (!form_.section_open.empty()) {
      marked.push_back(Calls(call, false));
    }
    const Term more = Repeat(Sequence({Choice(std::move(marked)), text}), 0);
    const Term body =
        Rule("body", Choice({Sequence({std::move(begin), more}),
                             Sequence({Spaces(), bare, text, more})}));
    if (!reasoning_close.empty()) return Reasoned(reasoning_close, body);
    std::vector<Term> ways = {body};
    for (const ReasoningForm& form : ReasoningForms()) {
      // The first is looked for by every reader.
      if (&form != &ReasoningForms().front() && !IsControl(form.open)) continue;
      ways.push_back(
          Sequence({Spaces(), Marker(form.open), Reasoned(form.close, body)}));
    }
    return Choice(std::move(ways));
  }

  // Reasoning up to its end, or without one.
  Term Reasoned(const std::string& close, const Term& body) const {
    return Choice({grammar::StringLanguage::Without(close).Texts(),
                   Sequence({Until(close), body})});
  }

  static Term Spaces() {
    return Repeat(Class({{'\t', '\t'}, {'\n', '\n'}, {'\r', '\r'}, {' ', ' '}}),
                  0);
  }

  // Messages of gpt-oss; the prompt has begun the first.
  absl::StatusOr<Term> Messages(const Term& call) const {
    std::vector<std::string> markers = {"<|start|>",   "<|end|>",
                                        "<|call|>",    "<|return|>",
                                        "<|message|>", form_.call_open};
    WEFT_ASSIGN_OR_RETURN(const grammar::StringLanguage plain,
                          TextWithout(markers));
    markers.push_back("to=");  // the recipient's
    WEFT_ASSIGN_OR_RETURN(const grammar::StringLanguage header,
                          TextWithout(markers));
    const Term message = Sequence({Marker(form_.call_open), header.Texts(),
                                   Marker(form_.name_close), plain.Texts()});
    const Term either = Choice({message, call});
    const Term next =
        Sequence({Choice({Marker("<|end|>"), Marker(form_.call_close)}),
                  Marker(form_.section_open), header.Texts(), either});
    return Sequence({Choice({either, header.Texts()}), Repeat(next, 0)});
  }

  // Markers may stand in lines of their own.
  static Term Line() { return Optional(Literal("\n")); }
  Term Around(const std::string& marker, bool opens) const {
    if (marker.empty()) return Sequence({});
    return opens ? Sequence({Marker(marker), Line()})
                 : Sequence({Line(), Marker(marker)});
  }

  bool IsControl(const std::string& marker) const {
    return Marker(marker).bytes != marker;
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

  absl::StatusOr<Term> Schema(const json& schema,
                              const grammar::MemberForm* members = nullptr) {
    grammar::SchemaOptions options;
    options.strict = tool_is_strict_;
    options.members = members;
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

  // Any text up to and with the first `marker`.
  Term Until(const std::string& marker) const {
    return Sequence(
        {grammar::StringLanguage::Before(marker).Texts(), Marker(marker)});
  }

  absl::StatusOr<Term> Call(const json& function) {
    const std::string name = function["name"].get<std::string>();
    const auto strict = function.find("strict");
    tool_is_strict_ = strict != function.end() && strict->is_boolean()
                          ? strict->get<bool>()
                          : strict_ && must_call_;
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
    std::string end = form_.name_close;
    if (!form_.attributes_close.empty() &&
        !absl::EndsWith(form_.name_close, form_.attributes_close)) {
      end += form_.attributes_close;
    }
    const std::string begin = absl::StrCat(form_.name_prefix, name);
    // A call that is not the only one has a number of its own.
    const Term number =
        must_call_ ? Literal("0") : Repeat(Class({{'0', '9'}}), 1, 9);
    if (!form_.id_close.empty()) {
      return Sequence({Marker(form_.call_open), number,
                       Marker(absl::StrCat(form_.id_close, begin, end))});
    }
    const std::string whole = absl::StrCat(form_.call_open, begin);
    if (!form_.numbered) return Marker(whole + end);
    return Sequence({Marker(whole + ":"), number, Marker(end)});
  }

  // Arguments one by one.
  absl::StatusOr<Term> Members(const json& function, Term open,
                               const std::string& close) {
    WEFT_ASSIGN_OR_RETURN(const grammar::MemberForm members, Written());
    WEFT_ASSIGN_OR_RETURN(Term arguments,
                          Schema(ParametersOf(function), &members));
    const bool lines = form_.body == CallBody::kParameters;
    const Term line = lines ? Line() : Sequence({});
    return Sequence(
        {std::move(open), line, std::move(arguments), line, Marker(close)});
  }

  // How one is written, so that its reader (argument_reader.h) has the same.
  absl::StatusOr<grammar::MemberForm> Written() const {
    switch (form_.body) {
      case CallBody::kPython:
        return PythonMembers();
      case CallBody::kBraces:
        return BraceMembers();
      default:
        return MarkedMembers();
    }
  }

  static absl::StatusOr<grammar::MemberForm> PythonMembers() {
    grammar::Budget budget;
    grammar::MemberForm made;
    made.between = Literal(", ");
    WEFT_ASSIGN_OR_RETURN(
        made.listed_names,
        grammar::ParsePattern("^[0-9A-Z_a-z\\u{80}-\\u{10FFFF}]"
                              "[0-9A-Z_a-z.\\u{80}-\\u{10FFFF}-]*$",
                              &budget));
    made.other_names = made.listed_names;
    made.slash_escapes = false;  // Python has none
    made.member = [](const std::string* name, const Term& names, Term value,
                     bool) {
      return Sequence({name == nullptr ? names : Literal(*name), Literal("="),
                       std::move(value)});
    };
    return made;
  }

  absl::StatusOr<grammar::MemberForm> BraceMembers() const {
    grammar::Budget budget;
    grammar::MemberForm made;
    made.between = Literal(",");
    made.listed_names = grammar::StringLanguage::All();
    WEFT_ASSIGN_OR_RETURN(
        const grammar::StringLanguage bare,
        grammar::ParsePattern("^[^\\s:{}\\[\\],\"<]+$", &budget));
    made.other_names = bare;
    made.closing = form_.quote;
    made.tells_texts = true;
    made.member = [this, bare](const std::string* name, const Term& names,
                               Term value, bool is_text) {
      const std::string quote = is_text ? form_.quote : "";
      const Term key = name == nullptr   ? names
                       : bare.Has(*name) ? Literal(*name)
                                         : Literal(json(*name).dump());
      return Sequence(
          {key, Marker(":" + quote), std::move(value), Marker(quote)});
    };
    return made;
  }

  absl::StatusOr<grammar::MemberForm> MarkedMembers() const {
    grammar::Budget budget;
    grammar::MemberForm made;
    made.between = Line();
    // White space around names belongs to the markers.
    WEFT_ASSIGN_OR_RETURN(
        made.listed_names,
        grammar::ParsePattern(
            "^[^\\x00-\\x20](?:[^\\x00-\\x1f]*[^\\x00-\\x20])?$", &budget));
    WEFT_ASSIGN_OR_RETURN(
        made.listed_names,
        made.listed_names.And(grammar::StringLanguage::Before(form_.key_close),
                              &budget));
    const size_t key = form_.value_close.find('\1');
    if (key == std::string::npos) made.other_names = made.listed_names;
    made.closing = form_.value_close.substr(0, key);
    made.tells_texts = !form_.attributes_close.empty();
    made.member = [this](const std::string* name, const Term& names, Term value,
                         bool is_text) {
      std::string behind = form_.key_close;
      if (!form_.attributes_close.empty()) {
        absl::StrAppend(&behind, form_.written_attributes[is_text ? 0 : 1],
                        form_.attributes_close);
      }
      const std::string close = absl::StrReplaceAll(
          form_.value_close, {{"\1", name == nullptr ? "" : *name}});
      const char* const line = form_.value_lines ? "\n" : "";
      return Sequence(
          {name == nullptr
               ? Sequence({Marker(form_.parameter_open), names, Marker(behind)})
               : Marker(absl::StrCat(form_.parameter_open, *name, behind)),
           form_.value_open.empty() ? Sequence({}) : Line(),
           Marker(form_.value_open + line), std::move(value),
           Marker(line + close)});
    };
    return made;
  }

  const CallForm& form_;
  const std::vector<std::string>& control_;
  const bool strict_;
  // An answer is one call, and nothing else.
  bool must_call_ = true;
  bool tool_is_strict_ = true;  // the one that is read
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

bool AnyStrict(const json& tools) {
  return std::any_of(tools.begin(), tools.end(), [](const json& tool) {
    const auto function = tool.find("function");
    return function != tool.end() && function->is_object() &&
           function->value("strict", json()) == true;
  });
}

json OrText(json tools) {
  tools.push_back({{"type", kText}, {"function", json::object()}});
  return tools;
}

}  // namespace weft::answer
