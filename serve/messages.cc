#include "serve/messages.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "serve/completions.h"
#include "serve/dialect.h"
#include "serve/json_fields.h"
#include "serve/openai_response.h"
#include "serve/prompts.h"
#include "text/answer/json_scanner.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;
using Kind = AnswerPart::Kind;

constexpr FieldName kNames[] = {
    {"max_tokens", "max_tokens"}, {"temperature", "temperature"},
    {"top_p", "top_p"},           {"top_k", "top_k"},
    {"stop_sequences", "stop"},   {"stream", "stream"},
};

// What is put together of several fields, or lies elsewhere.
constexpr FieldName kPaths[] = {
    {"messages", "messages*"},
    {"tool_choice.name", "tool_choice.function.name"},
    {"tools[].input_schema", "tools[].function.parameters"},
    {"tools[]", "tools[].function"},
};

// Where the form of the answer may stand: as it is called today, and as it was.
struct FormatField {
  const char* outer;  // null: `name` stands by itself
  const char* name;
  const char* path;
};
constexpr FormatField kFormats[] = {
    {"output_config", "format", "output_config.format"},
    {nullptr, "output_format", "output_format"},
};

// The text of a string or of blocks of text.
std::string BlockText(const json& content, const std::string& path,
                      JsonFields* fields) {
  if (content.is_string()) return content.get<std::string>();
  std::string joined;
  if (!content.is_array()) {
    fields->Fail(path, "want a string or a list of blocks");
    return joined;
  }
  for (size_t i = 0; i < content.size(); ++i) {
    JsonFields block(content[i], absl::StrCat(path, "[", i, "]"));
    std::string type, text;
    block.Text("type", &type);
    block.Text("text", &text);
    if (block.status().ok() && type != "text") {
      block.Fail("type", absl::StrCat(JsonExcerpt(type),
                                      " is not supported: want \"text\""));
    }
    fields->Keep(block.status());
    absl::StrAppend(&joined, i == 0 ? "" : "\n", text);
  }
  return joined;
}

// One message becomes one of a chat, and before it one for each result of a
// tool.
void TranslateMessage(const json& value, const std::string& path,
                      JsonFields* fields, json* messages) {
  JsonFields message(value, path);
  std::string role;
  message.Text("role", &role);
  if (message.status().ok() && role != "user" && role != "assistant") {
    message.Fail("role", "want user or assistant");
  }
  const json* content = message.Find("content");
  if (message.status().ok() && content == nullptr) {
    message.Fail("content", "is missing");
  }
  if (!message.status().ok()) return fields->Keep(message.status());
  const std::string inner = absl::StrCat(path, ".content");
  if (!content->is_array()) {
    messages->push_back(
        {{"role", role}, {"content", BlockText(*content, inner, fields)}});
    return;
  }
  std::string text, thinking;
  json calls = json::array(), results = json::array();
  for (size_t i = 0; i < content->size(); ++i) {
    const json& part = (*content)[i];
    JsonFields block(part, absl::StrCat(inner, "[", i, "]"));
    std::string type, words;
    block.Text("type", &type);
    if (type == "text") {
      block.Text("text", &words);
      absl::StrAppend(&text, text.empty() ? "" : "\n", words);
    } else if (type == "thinking") {
      block.Text("thinking", &words);
      absl::StrAppend(&thinking, words);
    } else if (type == "redacted_thinking") {
      // Nobody here can read it.
    } else if (type == "tool_use" && role == "assistant") {
      std::string id, name;
      block.Text("id", &id);
      block.Text("name", &name);
      const json* input = block.Find("input");
      calls.push_back(
          {{"id", id},
           {"type", "function"},
           {"function",
            {{"name", name},
             {"arguments", input == nullptr ? "{}" : JsonText(*input)}}}});
    } else if (type == "tool_result" && role == "user") {
      std::string id;
      block.Text("tool_use_id", &id);
      const json* result = block.Find("content");
      words = result == nullptr
                  ? ""
                  : BlockText(*result, block.Path("content"), &block);
      bool failed = false;
      block.Bool("is_error", &failed);
      // Templates have no place for it, so it is said.
      if (failed && !absl::StartsWithIgnoreCase(words, "error")) {
        words = absl::StrCat("Error: ", words);
      }
      results.push_back(
          {{"role", "tool"}, {"tool_call_id", id}, {"content", words}});
    } else {
      block.Fail("type",
                 absl::StrCat(JsonExcerpt(type),
                              " is not supported in a message of the ", role));
    }
    fields->Keep(block.status());
  }
  const bool only_results = !results.empty() && text.empty();
  for (json& result : results) messages->push_back(std::move(result));
  if (only_results) return;
  json out = {{"role", role}, {"content", text}};
  if (!thinking.empty()) out["reasoning_content"] = thinking;
  if (!calls.empty()) {
    if (text.empty()) out["content"] = nullptr;
    out["tool_calls"] = std::move(calls);
  }
  messages->push_back(std::move(out));
}

void TranslateTools(JsonFields* fields, json* out) {
  const json* tools = fields->Find("tools");
  if (tools != nullptr && !tools->is_array()) {
    fields->Fail("tools", "want a list");
  } else if (tools != nullptr && !tools->empty()) {
    json list = json::array();
    for (size_t i = 0; i < tools->size(); ++i) {
      JsonFields tool((*tools)[i], absl::StrCat("tools[", i, "]"));
      std::string type = "custom", name;
      tool.Text("type", &type);
      if (type != "custom") {
        tool.Fail("type", "the server has no tools of its own");
      }
      tool.Text("name", &name);
      fields->Keep(tool.status());
      json function = {{"name", name}};
      static constexpr FieldName kFields[] = {{"description", "description"},
                                              {"input_schema", "parameters"},
                                              {"strict", "strict"}};
      CopyFields((*tools)[i], kFields, &function);
      list.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    (*out)["tools"] = std::move(list);
  }
  const json* choice = fields->Find("tool_choice");
  if (choice == nullptr) return;
  JsonFields inner(*choice, "tool_choice");
  std::string type, name;
  bool one_call = false;
  inner.Text("type", &type);
  inner.Text("name", &name);
  inner.Bool("disable_parallel_tool_use", &one_call);
  (*out)["parallel_tool_calls"] = !one_call;
  fields->Keep(inner.status());
  if (type == "tool") {
    (*out)["tool_choice"] = {{"type", "function"},
                             {"function", {{"name", name}}}};
  } else if (type == "auto" || type == "none") {
    (*out)["tool_choice"] = type;
  } else if (type == "any") {
    (*out)["tool_choice"] = "required";
  } else {
    fields->Fail("tool_choice", "want auto, any, tool or none");
  }
}

// The schema that the answer is to fit.
void TranslateFormat(JsonFields* fields, json* out, FieldNames* names) {
  for (const FormatField& field : kFormats) {
    const json* format = nullptr;
    if (field.outer == nullptr) {
      format = fields->Find(field.name);
    } else if (const json* outer = fields->Find(field.outer)) {
      JsonFields inner(*outer, field.outer);
      fields->Keep(inner.status());
      format = inner.Find(field.name);
    }
    if (format == nullptr) continue;
    JsonFields described(*format, field.path);
    std::string type;
    described.Text("type", &type);
    const json* schema = described.Find("schema");
    if (type != "json_schema") described.Fail("type", "want json_schema");
    if (schema == nullptr) described.Fail("schema", "is missing");
    fields->Keep(described.status());
    if (!described.status().ok()) return;
    (*out)["response_format"] = {{"type", "json_schema"},
                                 {"json_schema", {{"schema", *schema}}}};
    static constexpr FieldName kFields[] = {
        {".schema", "response_format.json_schema.schema"},
        {"", "response_format"}};
    names->Add(kFields, field.path);
  }
}

// A chat's request, and how it calls its fields.
struct MessagesRequest {
  ChatCompletionRequest chat;
  FieldNames names;
};

absl::StatusOr<MessagesRequest> ReadRequest(const json& body,
                                            const RequestLimits& limits,
                                            bool answers) {
  JsonFields fields(body, "");
  if (!fields.status().ok()) return fields.status();
  MessagesRequest request;
  request.names.Add(kNames).Add(kPaths);
  json out = {{"temperature", 1}};
  CopyFields(body, kOwnFields, &out);
  CopyFields(body, kNames, &out);
  if (answers && !fields.Has("max_tokens")) {
    fields.Fail("max_tokens", "is missing");
  }
  // Elsewhere -1 is all there is room for.
  int64_t most = 0;
  fields.Integer("max_tokens", 0, limits.generated_tokens, &most);
  json messages = json::array();
  if (const json* system = fields.Find("system")) {
    messages.push_back({{"role", "system"},
                        {"content", BlockText(*system, "system", &fields)}});
  }
  const json* asked = fields.Find("messages");
  if (asked == nullptr || !asked->is_array() || asked->empty()) {
    return FieldError("messages", "want a list of messages");
  }
  for (size_t i = 0; i < asked->size(); ++i) {
    TranslateMessage((*asked)[i], absl::StrCat("messages[", i, "]"), &fields,
                     &messages);
  }
  out["messages"] = std::move(messages);
  TranslateTools(&fields, &out);
  TranslateFormat(&fields, &out, &request.names);
  std::string thinking = "disabled";
  if (const json* asked_thinking = fields.Find("thinking")) {
    JsonFields inner(*asked_thinking, "thinking");
    inner.Text("type", &thinking);
    fields.Keep(inner.status());
  }
  out["chat_template_kwargs"] = {{"enable_thinking", thinking != "disabled"}};
  if (!fields.status().ok()) return fields.status();
  absl::StatusOr<ChatCompletionRequest> chat =
      ReadChatCompletionRequest(out, limits);
  if (!chat.ok()) return request.names.Told(chat.status());
  request.chat = *std::move(chat);
  return request;
}

class MessagesForm : public AnswerForm {
 public:
  MessagesForm(const ServedModel& model, const Job& job)
      : model_(model.id),
        id_(RandomId("msg_")),
        stops_(job.fields.stop),
        reader_(std::move(ReadersFor(job, RandomId("")).front()),
                job.fields.stream ? PartReader::Calls::kInParts
                                  : PartReader::Calls::kAtTheirEnd) {
    usage_.prompt_tokens = static_cast<int64_t>(job.prompts[0].size());
  }

  std::string Begin() override {
    json message = Head();
    message["content"] = json::array();
    message["stop_reason"] = nullptr;
    message["stop_sequence"] = nullptr;
    message["usage"] = UsageJson();
    return NamedEvent(
        {{"type", "message_start"}, {"message", std::move(message)}});
  }
  std::string Part(int64_t, const Event& event) override {
    std::string events;
    Take(event);
    for (const AnswerPart& part : reader_.Read(event)) {
      absl::StrAppend(&events, Delta(part));
    }
    if (event.finished) absl::StrAppend(&events, CloseBlock());
    return events;
  }
  std::string End(const Usage&) override {
    return absl::StrCat(NamedEvent({{"type", "message_delta"},
                                    {"delta",
                                     {{"stop_reason", StopReason()},
                                      {"stop_sequence", StopSequence()}}},
                                    {"usage", UsageJson()}}),
                        NamedEvent({{"type", "message_stop"}}));
  }
  std::string Failure(const ApiError& error) override {
    return NamedEvent(MessagesError(error));
  }
  std::string StillHere() override { return NamedEvent({{"type", "ping"}}); }

  void Add(int64_t, const Event& event) override {
    Take(event);
    bytes_ += static_cast<int64_t>(event.text.size());
    for (AnswerPart& part : reader_.Read(event)) {
      if (part.kind == Kind::kCallEnd) continue;
      const bool goes_on =
          !blocks_.empty() && (blocks_.back().kind == part.kind ||
                               (blocks_.back().kind == Kind::kCall &&
                                part.kind == Kind::kArguments));
      if (goes_on && part.kind != Kind::kCall) {
        blocks_.back().text += part.text;
      } else {
        blocks_.push_back(std::move(part));
      }
    }
  }
  int64_t bytes() const override { return bytes_; }
  void Whole(const Usage&, JsonStream* answer) override {
    answer->Open('{');
    const json head = Head();
    for (const auto& field : head.items()) {
      answer->Key(field.key());
      answer->Value(field.value());
    }
    answer->Key("content");
    answer->Open('[');
    for (const AnswerPart& block : blocks_) WriteBlock(block, answer);
    answer->Close();
    answer->Key("stop_reason");
    answer->Value(StopReason());
    answer->Key("stop_sequence");
    answer->Value(StopSequence());
    answer->Key("usage");
    answer->Value(UsageJson());
    answer->Close();
  }

 private:
  json Head() const {
    return {{"id", id_},
            {"type", "message"},
            {"role", "assistant"},
            {"model", model_}};
  }

  void Take(const Event& event) {
    usage_ = event.usage;
    reason_ = event.reason;
    stop_string_ = event.stop_string;
  }

  json UsageJson() const {
    return {{"input_tokens", usage_.prompt_tokens - usage_.cached_tokens},
            {"cache_creation_input_tokens", 0},
            {"cache_read_input_tokens", usage_.cached_tokens},
            {"output_tokens", usage_.completion_tokens}};
  }

  // A call that was cut off is still the last block, and with "max_tokens"
  // clients know it for what it is: they ask again with more, as Anthropic's
  // documents say ("Handling stop reasons").
  const char* StopReason() const {
    if (WasCut(reason_)) return "max_tokens";
    if (reader_.called()) return "tool_use";
    return reason_ == FinishReason::kStopString ? "stop_sequence" : "end_turn";
  }
  json StopSequence() const {
    return stop_string_ < 0 || reader_.called() ? json(nullptr)
                                                : json(stops_[stop_string_]);
  }

  static json EmptyBlock(const AnswerPart& part) {
    switch (part.kind) {
      case Kind::kReasoning:
        return {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
      case Kind::kCall:
        return {{"type", "tool_use"},
                {"id", part.call.id},
                {"name", part.call.name},
                {"input", json::object()}};
      default:
        return {{"type", "text"}, {"text", ""}};
    }
  }

  static void WriteBlock(const AnswerPart& block, JsonStream* answer) {
    if (block.kind != Kind::kCall) {
      json value = EmptyBlock(block);
      value[block.kind == Kind::kReasoning ? "thinking" : "text"] = block.text;
      return answer->Value(value);
    }
    const json call = EmptyBlock(block);
    answer->Open('{');
    for (const char* name : {"type", "id", "name"}) {
      answer->Key(name);
      answer->Value(call[name]);
    }
    answer->Key("input");
    // As it was written: numbers keep their digits. Of a call that was cut off
    // nobody is to act on a part: there is none.
    answer::IsJson(block.text) ? answer->Raw(block.text)
                               : answer->Value(json::object());
    answer->Close();
  }

  std::string OpenBlock(const AnswerPart& part) {
    if (open_ && part.kind != Kind::kCall && kind_ == part.kind) return "";
    std::string events = CloseBlock();
    open_ = true;
    kind_ = part.kind;
    absl::StrAppend(&events, NamedEvent({{"type", "content_block_start"},
                                         {"index", index_},
                                         {"content_block", EmptyBlock(part)}}));
    return events;
  }
  std::string CloseBlock() {
    if (!open_) return "";
    open_ = false;
    return NamedEvent({{"type", "content_block_stop"}, {"index", index_++}});
  }

  std::string Delta(const AnswerPart& part) {
    if (part.kind == Kind::kCall) return OpenBlock(part);
    if (part.kind == Kind::kCallEnd) return CloseBlock();
    std::string events;
    json delta;
    if (part.kind == Kind::kArguments) {
      delta = {{"type", "input_json_delta"}, {"partial_json", part.text}};
    } else {
      events = OpenBlock(part);
      delta = part.kind == Kind::kReasoning
                  ? json{{"type", "thinking_delta"}, {"thinking", part.text}}
                  : json{{"type", "text_delta"}, {"text", part.text}};
    }
    absl::StrAppend(&events, NamedEvent({{"type", "content_block_delta"},
                                         {"index", index_},
                                         {"delta", std::move(delta)}}));
    return events;
  }

  const std::string model_, id_;
  const std::vector<std::string> stops_;
  PartReader reader_;
  Usage usage_;
  FinishReason reason_ = FinishReason::kLength;
  int stop_string_ = -1;
  // Of a stream: the block that is open.
  bool open_ = false;
  Kind kind_ = Kind::kText;
  int64_t index_ = 0;
  // Of a whole answer; calls have their arguments as text.
  std::vector<AnswerPart> blocks_;
  int64_t bytes_ = 0;
};

const char* ErrorType(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

absl::StatusOr<Job> MakeJob(const ServedModel& model,
                            const ServiceLimits& limits, HttpCall* call) {
  WEFT_ASSIGN_OR_RETURN(const json body, ParseJson(call->body));
  WEFT_ASSIGN_OR_RETURN(MessagesRequest request,
                        ReadRequest(body, limits.request, /*answers=*/true));
  absl::StatusOr<Job> job =
      ChatJob(model, limits, WhileClientIsThere(call), std::move(request.chat));
  if (!job.ok()) return request.names.Told(job.status());
  job->names = std::move(request.names);
  return job;
}

absl::StatusOr<size_t> CountTokens(const ServedModel& model,
                                   const ServiceLimits& limits,
                                   HttpCall* call) {
  WEFT_ASSIGN_OR_RETURN(const json body, ParseJson(call->body));
  WEFT_ASSIGN_OR_RETURN(const MessagesRequest request,
                        ReadRequest(body, limits.request, /*answers=*/false));
  const absl::StatusOr<size_t> count =
      CountChatTokens(model, WhileClientIsThere(call), request.chat);
  if (!count.ok()) return request.names.Told(count.status());
  return count;
}

}  // namespace

json MessagesError(const ApiError& error) {
  return {{"type", "error"},
          {"error",
           {{"type", ErrorType(error.status)}, {"message", error.message}}}};
}

void AnswerMessages(const ServedModel& model, const ServiceLimits& limits,
                    HttpCall* call) {
  if (model.encoder()) return call->Answer(WritesNoText(model));
  absl::StatusOr<Job> job = MakeJob(model, limits, call);
  if (!job.ok()) return call->Answer(ToApiError(job.status()));
  RunJob(
      model, limits, *std::move(job),
      [&model](const Job& job) {
        return std::make_unique<MessagesForm>(model, job);
      },
      call);
}

void AnswerCountTokens(const ServedModel& model, const ServiceLimits& limits,
                       HttpCall* call) {
  if (model.encoder()) return call->Answer(WritesNoText(model));
  const absl::StatusOr<size_t> count = CountTokens(model, limits, call);
  if (!count.ok()) return call->Answer(ToApiError(count.status()));
  call->Answer(json{{"input_tokens", *count}});
}

}  // namespace weft
