// Chat requests (serve/openai_request.h): messages, tools and what they may
// hold.
#include <array>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "serve/generation_fields.h"
#include "serve/json_fields.h"
#include "serve/openai_request.h"
#include "text/answer/arguments.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

constexpr std::array<absl::string_view, 6> kRoles = {
    "system", "developer", "user", "assistant", "tool", "function"};

// A string, or a list of parts of text, which are joined by line ends:
// templates want strings.
void ReadContent(JsonFields* fields, json* message) {
  const json* content = fields->Find("content");
  (*message)["content"] = nullptr;
  if (content == nullptr) return;
  if (content->is_string()) {
    (*message)["content"] = *content;
    return;
  }
  if (!content->is_array()) {
    return fields->Fail("content", "want a string or a list of text parts");
  }
  std::string joined;
  for (size_t i = 0; i < content->size(); ++i) {
    JsonFields part((*content)[i],
                    fields->Path(absl::StrCat("content[", i, "]")));
    std::string type, text;
    part.Text("type", &type);
    if (part.status().ok() && type != "text") {
      part.Fail("type", absl::StrCat(JsonExcerpt(type),
                                     " is not supported: want \"text\""));
    }
    if (part.status().ok() && !part.Has("text"))
      part.Fail("text", "is missing");
    part.Text("text", &text);
    fields->Keep(part.status());
    absl::StrAppend(&joined, i == 0 ? "" : "\n", text);
  }
  (*message)["content"] = std::move(joined);
}

// Calls that the assistant made earlier. Their arguments come as the text of an
// object, or as one.
void ReadToolCalls(JsonFields* fields, json* message) {
  const json* calls = fields->Find("tool_calls");
  if (calls == nullptr) return;
  if (!calls->is_array()) return fields->Fail("tool_calls", "want a list");
  json list = json::array();
  for (size_t i = 0; i < calls->size(); ++i) {
    JsonFields call((*calls)[i],
                    fields->Path(absl::StrCat("tool_calls[", i, "]")));
    std::string id, name, arguments;
    call.Text("id", &id);
    const json none = json::object();
    const json* function = call.Find("function");
    JsonFields inner(function == nullptr ? none : *function,
                     call.Path("function"));
    inner.Text("name", &name);
    const json* given = inner.Find("arguments");
    const bool object = given != nullptr && given->is_object();
    if (!object) inner.Text("arguments", &arguments);
    if (name.empty()) inner.Fail("name", "is missing");
    call.Keep(inner.status());
    fields->Keep(call.status());
    // Read here, where their size is bounded. What is no object stays text:
    // the model, this one perhaps, did not come to its end.
    json written = {{"name", name}, {"arguments", json::object()}};
    if (object) {
      written["arguments"] = *given;
    } else if (auto parsed = answer::ParseArguments(arguments)) {
      written["arguments"] = *std::move(parsed);
    } else if (!arguments.empty()) {
      written["arguments"] = arguments;
    }
    list.push_back(
        {{"id", id}, {"type", "function"}, {"function", std::move(written)}});
  }
  if (!list.empty()) (*message)["tool_calls"] = std::move(list);
}

json ReadMessage(const json& value, const std::string& path,
                 absl::Status* status) {
  JsonFields fields(value, path);
  json message = json::object();
  std::string role, name, tool_call_id;
  fields.Text("role", &role);
  if (fields.status().ok() && absl::c_find(kRoles, role) == kRoles.end()) {
    fields.Fail("role", fields.Has("role")
                            ? "want system, developer, user, assistant or tool"
                            : "is missing");
  }
  message["role"] = role == "developer" ? "system" : role;
  ReadContent(&fields, &message);
  ReadToolCalls(&fields, &message);
  if (role != "assistant" && message["content"].is_null()) {
    fields.Fail("content", "is missing");
  }
  if (role == "assistant") {
    std::string reasoning;
    fields.Text("reasoning", &reasoning);
    fields.Text("reasoning_content", &reasoning);
    if (!reasoning.empty()) message["reasoning_content"] = reasoning;
  }
  fields.Text("name", &name);
  if (!name.empty()) message["name"] = name;
  fields.Text("tool_call_id", &tool_call_id);
  if (!tool_call_id.empty()) message["tool_call_id"] = tool_call_id;
  if (status->ok()) *status = fields.status();
  return message;
}

void ReadMessages(JsonFields* fields, ChatCompletionRequest* request) {
  const json* messages = fields->Find("messages");
  if (messages == nullptr) return fields->Fail("messages", "is missing");
  if (!messages->is_array()) {
    return fields->Fail("messages", "want a list of messages");
  }
  if (messages->empty()) {
    return fields->Fail("messages", "the list is empty: want a message");
  }
  request->messages = json::array();
  absl::Status status;
  for (size_t i = 0; i < messages->size(); ++i) {
    request->messages.push_back(
        ReadMessage((*messages)[i],
                    fields->Path(absl::StrCat("messages[", i, "]")), &status));
  }
  fields->Keep(status);
}

void ReadTools(JsonFields* fields, ChatCompletionRequest* request) {
  const json* tools = fields->Find("tools");
  if (tools == nullptr) return;
  if (!tools->is_array()) return fields->Fail("tools", "want a list");
  for (size_t i = 0; i < tools->size(); ++i) {
    JsonFields tool((*tools)[i], fields->Path(absl::StrCat("tools[", i, "]")));
    std::string type = "function", name;
    tool.Text("type", &type);
    if (type != "function") tool.Fail("type", "want \"function\"");
    const json none = json::object();
    const json* function = tool.Find("function");
    JsonFields inner(function == nullptr ? none : *function,
                     tool.Path("function"));
    inner.Text("name", &name);
    if (name.empty()) inner.Fail("name", "is missing");
    const json* parameters = inner.Find("parameters");
    if (parameters != nullptr && !parameters->is_object()) {
      inner.Fail("parameters", "want a JSON schema");
    }
    tool.Keep(inner.status());
    fields->Keep(tool.status());
  }
  if (!tools->empty()) request->tools = *tools;
}

bool HasTool(const json& tools, const std::string& name) {
  return absl::c_any_of(tools, [&](const json& tool) {
    return tool["function"]["name"] == name;
  });
}

// The name of a function that is one of the request's.
std::string ReadToolName(const JsonFields& outer, const json& tools,
                         JsonFields* fields) {
  const json none = json::object();
  const json* function = outer.Find("function");
  JsonFields inner(function == nullptr ? none : *function,
                   outer.Path("function"));
  std::string name;
  inner.Text("name", &name);
  if (inner.status().ok() && !HasTool(tools, name)) {
    inner.Fail("name", "is no function of tools");
  }
  fields->Keep(inner.status());
  return name;
}

void ReadAllowedTools(const JsonFields& outer, JsonFields* fields,
                      ChatCompletionRequest* request) {
  const json none = json::object();
  const json* allowed = outer.Find("allowed_tools");
  JsonFields inner(allowed == nullptr ? none : *allowed,
                   outer.Path("allowed_tools"));
  std::string mode = "auto";
  inner.Text("mode", &mode);
  if (mode != "auto" && mode != "required") {
    inner.Fail("mode", "want auto or required");
  }
  const json* tools = inner.Find("tools");
  if (tools == nullptr || !tools->is_array() || tools->empty()) {
    inner.Fail("tools", "want a list of functions");
  }
  fields->Keep(inner.status());
  if (!inner.status().ok()) return;
  request->allowed_tools.emplace();
  for (size_t i = 0; i < tools->size(); ++i) {
    const JsonFields tool((*tools)[i],
                          inner.Path(absl::StrCat("tools[", i, "]")));
    fields->Keep(tool.status());
    request->allowed_tools->push_back(
        ReadToolName(tool, request->tools, fields));
  }
  if (mode == "required") request->tool_choice = ToolChoice::kRequired;
}

void ReadToolChoice(JsonFields* fields, ChatCompletionRequest* request) {
  bool parallel = true;
  fields->Bool("parallel_tool_calls", &parallel);
  request->one_call = !parallel;
  const json* choice = fields->Find("tool_choice");
  if (choice == nullptr || !fields->status().ok()) return;
  const char* name = "tool_choice";
  if (choice->is_object()) {
    JsonFields outer(*choice, name);
    std::string type = "function";
    outer.Text("type", &type);
    fields->Keep(outer.status());
    if (type == "allowed_tools") {
      return ReadAllowedTools(outer, fields, request);
    }
    request->tool_name = ReadToolName(outer, request->tools, fields);
    request->tool_choice = ToolChoice::kNamed;
    return;
  }
  if (*choice == "none") {
    request->tool_choice = ToolChoice::kNone;
  } else if (*choice == "required") {
    request->tool_choice = ToolChoice::kRequired;
    if (request->tools.is_null()) fields->Fail(name, "there are no tools");
  } else if (*choice != "auto") {
    fields->Fail(name, "want none, auto, required or a function");
  }
}

// Variables of the template, how much to reason among them, and where reasoning
// goes.
void ReadVariables(JsonFields* fields, ChatCompletionRequest* request) {
  const char* kwargs = "chat_template_kwargs";
  if (const json* variables = fields->Find(kwargs)) {
    if (!variables->is_object()) return fields->Fail(kwargs, "want an object");
    request->variables = *variables;
  }
  std::string effort, format = "auto";
  fields->Text("reasoning_effort", &effort);
  if (!effort.empty()) {
    json& variables = request->variables;
    if (variables.is_null()) variables = json::object();
    const auto set = [&](const char* name, json value) {
      if (!variables.contains(name)) variables[name] = std::move(value);
    };
    set("reasoning_effort", effort);
    if (effort == "none") {
      set("enable_thinking", false);
      set("thinking", false);
    }
  }
  fields->Text("reasoning_format", &format);
  if (format != "auto" && format != "none" && format != "deepseek") {
    fields->Fail("reasoning_format", "want auto, deepseek (the same) or none");
  }
  request->separate_reasoning = format != "none";
}

// Whether a new turn begins, or the last message goes on: where the request
// does not say, a last message of the assistant does.
void ReadContinuation(JsonFields* fields, ChatCompletionRequest* request) {
  absl::optional<bool> opens, continues;
  for (const auto& [name, value] :
       {std::pair("add_generation_prompt", &opens),
        std::pair("continue_final_message", &continues)}) {
    if (!fields->Has(name)) continue;
    bool flag = false;
    fields->Bool(name, &flag);
    *value = flag;
  }
  if (!fields->status().ok()) return;
  const json& last = request->messages.back();
  const bool has_text = last["content"].is_string() && last["content"] != "" &&
                        !last.contains("tool_calls");
  request->continues_last = continues.value_or(
      !opens.has_value() && last["role"] == "assistant" && has_text);
  request->add_generation_prompt = opens.value_or(!request->continues_last);
  if (!request->continues_last) return;
  const char* name = "continue_final_message";
  if (!has_text) fields->Fail(name, "the last message has no text");
  if (request->add_generation_prompt) {
    fields->Fail(name, "not together with add_generation_prompt");
  }
}

void ReadTemplateFields(JsonFields* fields, ChatCompletionRequest* request) {
  ReadMessages(fields, request);
  ReadContinuation(fields, request);
  ReadTools(fields, request);
  ReadToolChoice(fields, request);
  ReadVariables(fields, request);
}

}  // namespace

absl::StatusOr<ChatCompletionRequest> ParseChatCompletionRequest(
    absl::string_view body, const RequestLimits& limits) {
  WEFT_ASSIGN_OR_RETURN(const json parsed, ParseJson(body));
  return ReadChatCompletionRequest(parsed, limits);
}

absl::StatusOr<ChatCompletionRequest> ReadChatCompletionRequest(
    const json& body, const RequestLimits& limits) {
  JsonFields fields(body, "");
  if (!fields.status().ok()) return fields.status();
  ChatCompletionRequest request;
  ReadTemplateFields(&fields, &request);
  ReadGenerationFields(&fields, limits, &request.generation);
  bool logprobs = false;
  absl::optional<int64_t> top;
  fields.Bool("logprobs", &logprobs);
  fields.Integer("top_logprobs", 0, limits.top_logprobs, &top);
  if (top.has_value() && !logprobs) {
    fields.Fail("top_logprobs", "only together with \"logprobs\": true");
  }
  if (logprobs) request.generation.top_logprobs = top.value_or(0);
  for (const char* name : {"functions", "function_call"}) {
    fields.Refuse(name, "is the old form: use tools and tool_choice");
  }
  fields.Refuse("audio", "the model writes text only");
  if (fields.Has("prompt_logprobs")) {
    fields.Fail("prompt_logprobs", "only in /v1/completions");
  }
  if (const json* modalities = fields.Find("modalities")) {
    if (*modalities != json::array({"text"})) {
      fields.Fail("modalities", "the model writes text only");
    }
  }
  const bool forces_call = request.tool_choice == ToolChoice::kRequired ||
                           request.tool_choice == ToolChoice::kNamed;
  // What JSON is to be like is said of texts, which a call is not.
  if (forces_call && (request.generation.format == OutputFormat::kGrammar ||
                      request.generation.format == OutputFormat::kRegex ||
                      request.generation.ignore_eos)) {
    fields.Fail("tool_choice",
                "a call cannot have a grammar or go on for ever");
  }
  if (!fields.status().ok()) return fields.status();
  return request;
}

absl::StatusOr<ChatCompletionRequest> ParseTemplateRequest(
    absl::string_view body) {
  WEFT_ASSIGN_OR_RETURN(json parsed, ParseJson(body));
  JsonFields fields(parsed, "");
  if (!fields.status().ok()) return fields.status();
  ChatCompletionRequest request;
  ReadTemplateFields(&fields, &request);
  if (!fields.status().ok()) return fields.status();
  return request;
}

}  // namespace weft
