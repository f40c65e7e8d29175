#include "text/answer/write_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "text/answer/arguments.h"
#include "text/json_tree.h"

namespace weft::answer {
namespace {

using json = nlohmann::ordered_json;

std::string Value(const json& value) {
  return value.is_string() ? value.get<std::string>() : WriteJson(value);
}

std::string JsonCall(const CallForm& form, const std::string& name,
                     const json& arguments) {
  const json call =
      form.name_key.empty()
          ? json{{name, arguments}}
          : json{{form.name_key, name}, {form.arguments_key, arguments}};
  return WriteJson(call);
}

std::string Parameters(const CallForm& form, const json& arguments) {
  const char* const line = form.value_lines ? "\n" : "";
  std::string text;
  for (const auto& [key, value] : arguments.items()) {
    absl::StrAppend(&text, form.parameter_open, key, form.key_close);
    if (!form.attributes_close.empty()) {
      absl::StrAppend(&text, form.written_attributes[value.is_string() ? 0 : 1],
                      form.attributes_close);
    }
    absl::StrAppend(&text, form.value_open, line, Value(value), line,
                    absl::StrReplaceAll(form.value_close, {{"\1", key}}), line);
  }
  return text;
}

std::string Python(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_null()) return "None";
  if (!value.is_structured()) return WriteJson(value);
  std::string text;
  for (const auto& [key, part] : value.items()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    value.is_object() ? WriteJson(key) + ": " : "",
                    Python(part));
  }
  return value.is_object() ? absl::StrCat("{", text, "}")
                           : absl::StrCat("[", text, "]");
}

std::string Braces(const CallForm& form, const json& value) {
  if (value.is_string()) {
    return absl::StrCat(form.quote, value.get<std::string>(), form.quote);
  }
  if (!value.is_structured()) return WriteJson(value);
  std::string text;
  for (const auto& [key, part] : value.items()) {
    absl::StrAppend(&text, text.empty() ? "" : ",",
                    value.is_object() ? key + ":" : "", Braces(form, part));
  }
  return value.is_object() ? absl::StrCat("{", text, "}")
                           : absl::StrCat("[", text, "]");
}

std::string PythonCall(const std::string& name, const json& arguments) {
  std::string text;
  for (const auto& [key, value] : arguments.items()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", key, "=", Python(value));
  }
  return absl::StrCat(name, "(", text, ")");
}

// Of a call whose name stands between markers.
std::string Named(const CallForm& form, const std::string& name,
                  const std::string& id, size_t index) {
  std::string text = form.call_open;
  if (!form.id_close.empty()) absl::StrAppend(&text, id, form.id_close);
  absl::StrAppend(&text, form.name_prefix, name);
  if (form.numbered) absl::StrAppend(&text, ":", index);
  absl::StrAppend(&text, form.name_close);
  if (form.body == CallBody::kParameters && !form.attributes_close.empty() &&
      form.name_close.find(form.attributes_close) == std::string::npos) {
    absl::StrAppend(&text, form.attributes_close);
  }
  return text;
}

}  // namespace

std::string WriteCalls(const CallForm& form, const json& calls) {
  std::vector<std::string> written;
  for (const json& call : calls) {
    const json& function = call["function"];
    const std::string name = function["name"].get<std::string>();
    json arguments = function.value("arguments", json::object());
    if (arguments.is_string()) {
      arguments = ArgumentsObject(arguments.get<std::string>());
    }
    const std::string id = call.value("id", "");
    switch (form.body) {
      case CallBody::kJson:
        written.push_back(JsonCall(form, name, arguments));
        break;
      case CallBody::kNamed:
        written.push_back(absl::StrCat(Named(form, name, id, written.size()),
                                       form.name_close == "```json" ? "\n" : "",
                                       WriteJson(arguments), form.call_close));
        break;
      case CallBody::kParameters:
        written.push_back(absl::StrCat(
            Named(form, name, id, written.size()), form.value_lines ? "\n" : "",
            Parameters(form, arguments), form.call_close));
        break;
      case CallBody::kPython:
        written.push_back(PythonCall(name, arguments));
        break;
      case CallBody::kBraces:
        written.push_back(absl::StrCat(form.call_open, form.name_prefix, name,
                                       Braces(form, arguments),
                                       form.call_close));
        break;
      case CallBody::kHarmony:
        written.push_back(absl::StrCat(
            written.empty() ? "" : absl::StrCat(form.section_open, "assistant"),
            form.call_open, "commentary to=", form.name_prefix, name,
            " <|constrain|>json", form.name_close, WriteJson(arguments),
            form.call_close));
        break;
    }
  }
  const bool bracketed =
      form.body == CallBody::kJson || form.body == CallBody::kPython;
  std::string text;
  for (const std::string& call : written) {
    if (!bracketed || form.list) {
      absl::StrAppend(&text, text.empty() || !bracketed ? "" : ", ", call);
    } else if (form.call_open.empty()) {
      absl::StrAppend(&text, text.empty() ? "" : "; ", call);
    } else {
      absl::StrAppend(&text, text.empty() ? "" : "\n", form.call_open, "\n",
                      call, "\n", form.call_close);
    }
  }
  if (bracketed && form.list) {
    text = absl::StrCat(form.call_open, "[", text, "]", form.call_close);
  }
  if (form.body == CallBody::kHarmony || form.call_open.empty()) return text;
  return absl::StrCat(form.section_open, form.section_open.empty() ? "" : "\n",
                      text, form.section_close.empty() ? "" : "\n",
                      form.section_close);
}

}  // namespace weft::answer
