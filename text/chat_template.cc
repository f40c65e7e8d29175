#include "text/chat_template.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "text/chat_template_table.h"
#include "text/jinja/template.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Roles that templates make control tokens of.
constexpr absl::string_view kRoles[] = {
    "assistant",     "bot",      "context",       "critic",  "developer",
    "documents",     "function", "human",         "ipython", "model",
    "observation",   "system",   "system_prompt", "tool",    "tool_call",
    "tool_response", "user",     "environment"};

// What named templates begin with: a content that is a list of parts is their
// texts, and one that is missing prints nothing.
constexpr absl::string_view kContentMacro = R"(
{%- macro text(message) %}
  {%- if message.content is string %}
    {{- message.content }}
  {%- elif message.content %}
    {%- for part in message.content %}
      {{- part.text }}
    {%- endfor %}
  {%- endif %}
{%- endmacro %}
)";

std::string TokenText(const Vocabulary& vocabulary, int32_t id) {
  if (id < 0 || id >= vocabulary.tokens_size()) return "";
  return vocabulary.tokens(id);
}

bool HasToken(const Vocabulary& vocabulary, absl::string_view text) {
  return std::find(vocabulary.tokens().begin(), vocabulary.tokens().end(),
                   text) != vocabulary.tokens().end();
}

absl::Status Refused(absl::string_view what, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("chat template: ", what, ": ", why));
}

absl::Status Check(const ChatRequest& request) {
  if (!request.messages.is_array()) {
    return Refused("messages", "must be an array");
  }
  for (size_t i = 0; i < request.messages.size(); ++i) {
    if (!request.messages[i].is_object()) {
      return Refused(absl::StrCat("messages[", i, "]"), "must be an object");
    }
  }
  if (!request.tools.is_null() && !request.tools.is_array()) {
    return Refused("tools", "must be an array");
  }
  if (!request.variables.is_null() && !request.variables.is_object()) {
    return Refused("variables", "must be an object");
  }
  return absl::OkStatus();
}

absl::Status Prefixed(const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("chat template: ", status.message()));
}

std::vector<TextSegment> Cut(const jinja::Text& text) {
  std::vector<TextSegment> segments;
  for (const char32_t character : text) {
    const bool from_template = !jinja::IsMarked(character);
    if (segments.empty() || segments.back().from_template != from_template) {
      segments.push_back({"", from_template});
    }
    jinja::AppendUtf8(character, segments.back().text);
  }
  return segments;
}

}  // namespace

absl::StatusOr<ChatTemplate> ChatTemplate::Parse(absl::string_view source,
                                                 absl::string_view bos,
                                                 absl::string_view eos) {
  auto parsed = jinja::Template::Parse(source);
  if (!parsed.ok()) return Prefixed(parsed.status());
  ChatTemplate made;
  made.source_ = std::string(source);
  made.name_ = "the model's own";
  for (const absl::string_view name : ChatTemplateNames()) {
    if (*NamedChatTemplate(name) == source) made.name_ = std::string(name);
  }
  made.bos_ = std::string(bos);
  made.eos_ = std::string(eos);
  made.template_ = *std::move(parsed);
  return made;
}

absl::StatusOr<ChatTemplate> ChatTemplate::ForVocabulary(
    const Vocabulary& vocabulary, std::string* warning) {
  if (warning != nullptr) warning->clear();
  if (!vocabulary.chat_template().empty()) {
    return Parse(vocabulary.chat_template(),
                 TokenText(vocabulary, vocabulary.bos()),
                 TokenText(vocabulary, vocabulary.eos()));
  }
  absl::StatusOr<ChatTemplate> made = Default(vocabulary);
  if (made.ok() && warning != nullptr) {
    *warning = absl::StrCat(
        "chat template: the model has none: a default is used: ", made->name());
  }
  return made;
}

absl::StatusOr<ChatTemplate> ChatTemplate::Default(
    const Vocabulary& vocabulary) {
  const bool chat_ml = HasToken(vocabulary, "<|im_start|>") &&
                       HasToken(vocabulary, "<|im_end|>");
  absl::StatusOr<ChatTemplate> made =
      Parse(*NamedChatTemplate(chat_ml ? "chatml" : "plain"),
            TokenText(vocabulary, vocabulary.bos()),
            TokenText(vocabulary, vocabulary.eos()));
  return made;
}

absl::StatusOr<std::vector<TextSegment>> ChatTemplate::Render(
    const ChatRequest& request) const {
  WEFT_RETURN_IF_ERROR(Check(request));
  std::vector<jinja::Variable> variables;
  const auto set = [&](absl::string_view name, Json value, bool marked) {
    variables.push_back({std::string(name), std::move(value), marked, {}});
  };
  // HuggingFace's apply_chat_template always sets it.
  set("documents", nullptr, true);
  for (const auto& [name, value] : request.variables.items()) {
    set(name, value, true);
  }
  set("messages", request.messages, true);
  variables.back().trusted_roles = kRoles;
  set("tools", request.tools, true);
  set("add_generation_prompt", request.add_generation_prompt, false);
  set("bos_token", bos_, false);
  set("eos_token", eos_, false);
  absl::StatusOr<jinja::Text> text = template_->Render(variables, request.now);
  if (!text.ok()) return Prefixed(text.status());
  return Cut(*text);
}

std::optional<std::string> NamedChatTemplate(absl::string_view name) {
  for (const ChatTemplateRow& row : kChatTemplates) {
    if (row.name == name) return absl::StrCat(kContentMacro, row.source);
  }
  return std::nullopt;
}

std::vector<absl::string_view> ChatTemplateNames() {
  std::vector<absl::string_view> names;
  for (const ChatTemplateRow& row : kChatTemplates) names.push_back(row.name);
  return names;
}

std::string JoinSegments(const std::vector<TextSegment>& segments) {
  std::string text;
  for (const TextSegment& segment : segments) text += segment.text;
  return text;
}

}  // namespace weft
