#include "serve/output_format.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

absl::Status Set(OutputFormat format, std::string source,
                 const std::string& field, GenerationFields* generation) {
  if (generation->format != OutputFormat::kText) {
    return FieldError(
        field, absl::StrCat("not together with ", generation->format_field));
  }
  generation->format = format;
  generation->format_source = std::move(source);
  generation->format_field = field;
  return absl::OkStatus();
}

// A schema, or its text as some clients send it.
absl::Status SetSchema(const json& schema, const std::string& field,
                       GenerationFields* generation) {
  if (schema.is_string()) {
    absl::StatusOr<json> parsed = ParseJson(schema.get<std::string>());
    if (!parsed.ok() || parsed->is_string()) {
      return FieldError(field, "want a JSON schema");
    }
    return SetSchema(*parsed, field, generation);
  }
  if (!schema.is_object() && !schema.is_boolean()) {
    return FieldError(field, "want a JSON schema");
  }
  return Set(OutputFormat::kJsonSchema, schema.dump(), field, generation);
}

// One of these texts, as GBNF.
absl::Status SetChoice(const json& choices, const std::string& field,
                       GenerationFields* generation) {
  if (!choices.is_array() || choices.empty()) {
    return FieldError(field, "want a list of texts");
  }
  std::string source;
  for (const json& choice : choices) {
    if (!choice.is_string()) return FieldError(field, "want a list of texts");
    absl::StrAppend(&source, source.empty() ? "root ::= \"" : " | \"");
    for (const char c : choice.get<std::string>()) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        absl::StrAppend(&source, "\\", std::string(1, c));
      } else if (byte < 0x20) {
        absl::StrAppend(&source, "\\x", absl::Hex(byte, absl::kZeroPad2));
      } else {
        source.push_back(c);
      }
    }
    source.push_back('"');
  }
  return Set(OutputFormat::kGrammar, std::move(source), field, generation);
}

absl::Status SetText(OutputFormat format, const json& source,
                     const std::string& field, GenerationFields* generation) {
  if (!source.is_string()) return FieldError(field, "want a text");
  if (source.get<std::string>().empty()) return absl::OkStatus();
  return Set(format, source, field, generation);
}

void ReadStructuredOutputs(JsonFields* fields, GenerationFields* generation) {
  const char* name = "structured_outputs";
  const json* value = fields->Find(name);
  if (value == nullptr) return;
  JsonFields inner(*value, fields->Path(name));
  if (!inner.status().ok()) return fields->Keep(inner.status());
  if (const json* schema = inner.Find("json")) {
    inner.Keep(SetSchema(*schema, inner.Path("json"), generation));
  }
  if (const json* regex = inner.Find("regex")) {
    inner.Keep(
        SetText(OutputFormat::kRegex, *regex, inner.Path("regex"), generation));
  }
  if (const json* choice = inner.Find("choice")) {
    inner.Keep(SetChoice(*choice, inner.Path("choice"), generation));
  }
  if (const json* grammar = inner.Find("grammar")) {
    inner.Keep(SetText(OutputFormat::kGrammar, *grammar, inner.Path("grammar"),
                       generation));
  }
  bool any_object = false, closed = true;
  inner.Bool("json_object", &any_object);
  if (any_object) {
    inner.Keep(
        Set(OutputFormat::kJson, "", inner.Path("json_object"), generation));
  }
  inner.Bool("disable_additional_properties", &closed);
  generation->open_schema = !closed;
  inner.Refuse("structural_tag", "is not supported: use tools");
  fields->Keep(inner.status());
}

absl::Status ReadResponseFormat(const json& format, const std::string& path,
                                GenerationFields* generation) {
  JsonFields fields(format, path);
  if (!fields.status().ok()) return fields.status();
  std::string type = "text";
  fields.Text("type", &type);
  if (!fields.status().ok() || type == "text") return fields.status();
  if (type != "json_object" && type != "json_schema") {
    return FieldError(fields.Path("type"),
                      "want text, json_object or json_schema");
  }
  const json* described = fields.Find("json_schema");
  const bool is_flat = described == nullptr && fields.Has("schema");
  const json none = json::object();
  JsonFields schema(is_flat                ? format
                    : described == nullptr ? none
                                           : *described,
                    is_flat ? path : fields.Path("json_schema"));
  if (!schema.status().ok()) return schema.status();
  const json* source = schema.Find("schema");
  schema.Bool("strict", &generation->strict_schema);
  if (!schema.status().ok()) return schema.status();
  if (source != nullptr) {
    if (!source->is_object() && !source->is_boolean()) {
      return FieldError(schema.Path("schema"), "want a JSON schema");
    }
    return SetSchema(*source, path, generation);
  }
  return type == "json_object"
             ? Set(OutputFormat::kJson, "", path, generation)
             : FieldError(schema.Path("schema"), "is missing");
}

}  // namespace

void ReadOutputFormat(JsonFields* fields, GenerationFields* generation) {
  const auto read = [&](const char* name, auto set) {
    const json* value = fields->Find(name);
    if (value != nullptr) {
      fields->Keep(set(*value, fields->Path(name), generation));
    }
  };
  const auto text = [](OutputFormat format) {
    return [format](const json& value, const std::string& path,
                    GenerationFields* to) {
      return SetText(format, value, path, to);
    };
  };
  read("response_format", ReadResponseFormat);
  read("json_schema", SetSchema);
  read("guided_json", SetSchema);
  read("guided_regex", text(OutputFormat::kRegex));
  read("guided_choice", SetChoice);
  read("guided_grammar", text(OutputFormat::kGrammar));
  ReadStructuredOutputs(fields, generation);
  read("grammar", text(OutputFormat::kGrammar));
}

}  // namespace weft
