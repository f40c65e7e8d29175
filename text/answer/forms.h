// How models write reasoning and calls of tools: each form is data.
//
// Idea: the many customs are few shapes with markers of their own. A shape
// (CallBody) is code, once for reading (argument_reader.h) and once for writing
// (serve/output_grammar.h); a form is a row of the table in forms.cc. Which one
// a model uses its chat template says (find_forms.h).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft::answer {

enum class CallBody {
  // {"name": .., "arguments": {..}}; lists of them are read, too.
  kJson,
  // The name, then its arguments as a JSON object.
  kNamed,
  // The name, then keys and values, each between markers; values are text.
  kParameters,
  // Python: [name(key="value", ..), ..].
  kPython,
  // name{key:<quote>text<quote>,other:7}.
  kBraces,
  // Messages with a recipient, in channels (gpt-oss).
  kHarmony,
};

// Between markers there may be white space that nobody told of.
struct CallForm {
  std::string name;
  CallBody body = CallBody::kJson;
  // Around all calls; empty where there is nothing.
  std::string section_open, section_close;
  // Before the name or, of kJson and kPython, before the first bracket. Empty:
  // the answer begins with the calls.
  std::string call_open, call_close;
  // Behind the name; of kParameters it may be empty: a line break, or the next
  // marker.
  std::string name_close;
  // Belongs to the name as it is written, but not to the tool's.
  std::string name_prefix;
  // kNamed: an id before the name ends with `id_close`; one behind it begins
  // with `id_open`.
  std::string id_close, id_open;
  // kNamed: names no tool: what follows is content.
  std::string content_name;
  // kNamed: ":0" and so on follows the name; with it, it is the call's id.
  bool numbered = false;
  // kParameters. A \1 is the key.
  std::string parameter_open, key_close, value_open, value_close;
  // kParameters: behind name and key come attributes, up to this; behind a key
  // these for strings, and for other values.
  std::string attributes_close;
  std::array<std::string, 2> written_attributes;
  // kParameters: a line break at either end of a value belongs to the markers.
  bool value_lines = false;
  // kJson: the keys to write; a list of objects, or one object. Empty
  // `name_key`: {"the name": {arguments}}.
  std::string name_key = "name", arguments_key = "arguments";
  bool list = false;
  // kBraces: around strings.
  std::string quote;
  // What is in the source of a template for this form, which may show no calls.
  std::vector<std::string> signs;
};

struct ReasoningForm {
  std::string open, close;
  // Stand around what follows the reasoning, and belong to neither.
  std::string content_open, content_close;
};

// The more special ones first.
const std::vector<CallForm>& CallForms();
const std::vector<ReasoningForm>& ReasoningForms();

// What is looked for in one model's answers.
struct AnswerForms {
  std::optional<CallForm> call;
  std::vector<ReasoningForm> reasoning;

  bool harmony() const { return call && call->body == CallBody::kHarmony; }
  // What the reader must see of an answer even where it is control tokens.
  std::vector<std::string> Markers() const;
};

// What closes the reasoning that the prompt has opened; empty: it has not.
std::string OpenReasoning(const AnswerForms& forms, absl::string_view prompt);

// Reasoning as <think>, no calls.
AnswerForms PlainForms();
// The row of this name, which must be there, and reasoning as <think>.
AnswerForms NamedForms(absl::string_view name);

}  // namespace weft::answer
