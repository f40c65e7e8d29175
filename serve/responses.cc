#include "serve/responses.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "serve/completions.h"
#include "serve/dialect.h"
#include "serve/generation.h"
#include "serve/json_fields.h"
#include "serve/openai_response.h"
#include "serve/prompts.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;
using Kind = AnswerPart::Kind;

constexpr FieldName kNames[] = {
    {"max_output_tokens", "max_tokens"},
    {"temperature", "temperature"},
    {"top_p", "top_p"},
    {"stream", "stream"},
    {"top_logprobs", "top_logprobs"},
    {"chat_template_kwargs", "chat_template_kwargs"},
    {"parallel_tool_calls", "parallel_tool_calls"},
};

// What is put together of several fields, or lies elsewhere.
constexpr FieldName kPaths[] = {
    {"input", "messages*"},
    {"reasoning.effort", "reasoning_effort"},
    {"text.format.schema", "response_format.json_schema.schema"},
    {"text.format", "response_format.json_schema"},
    {"text.format", "response_format"},
    {"tool_choice.name", "tool_choice.function.name"},
    {"tool_choice.tools[].name",
     "tool_choice.allowed_tools.tools[].function.name"},
    {"tool_choice.tools[]", "tool_choice.allowed_tools.tools[]"},
    {"tool_choice", "tool_choice.allowed_tools"},
    {"tools[]", "tools[].function"},
};

// What the answer repeats of the request.
constexpr const char* kRepeated[] = {
    "instructions",
    "max_output_tokens",
    "metadata",
    "previous_response_id",
    "reasoning",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "truncation",
    "user",
    "parallel_tool_calls",
};

constexpr const char* kUnknown[] = {"background", "conversation", "prompt"};

struct ResponsesRequest {
  ChatCompletionRequest chat;
  json messages;  // to be kept: without instructions
  json input;     // all that was put in, as items
  json repeated;  // fields of the answer
  bool store = true;
};

FieldNames Names() { return FieldNames().Add(kNames).Add(kPaths); }

// The text of a string or of parts.
std::string PartsText(const json& content, JsonFields* item) {
  if (content.is_string()) return content.get<std::string>();
  std::string joined;
  if (!content.is_array()) {
    item->Fail("content", "want a string or a list of parts");
    return joined;
  }
  for (size_t i = 0; i < content.size(); ++i) {
    JsonFields part(content[i], item->Path(absl::StrCat("content[", i, "]")));
    std::string type, text;
    part.Text("type", &type);
    if (type == "refusal") {
      part.Text("refusal", &text);
    } else if (type == "input_text" || type == "output_text" ||
               type == "text" || type == "reasoning_text" ||
               type == "summary_text") {
      part.Text("text", &text);
    } else {
      part.Fail("type", absl::StrCat(JsonExcerpt(type),
                                     " is not supported: want input_text"));
    }
    item->Keep(part.status());
    absl::StrAppend(&joined, i == 0 ? "" : "\n", text);
  }
  return joined;
}

// Items in a row that were one answer become one message of the assistant.
class Conversation {
 public:
  // `find` knows earlier items by their ids, null where there is none.
  Conversation(json messages, std::function<json(const std::string&)> find)
      : messages_(std::move(messages)), find_(std::move(find)) {}

  void Add(const json& value, const std::string& path, JsonFields* fields) {
    JsonFields item(value, path);
    std::string type = "message";
    item.Text("type", &type);
    if (type == "message") {
      AddMessage(&item);
    } else if (type == "item_reference") {
      std::string id;
      item.Text("id", &id);
      const json found = find_(id);
      if (found.is_null()) {
        item.Fail("id", absl::StrCat(JsonExcerpt(id),
                                     " is not known here, or no longer"));
      } else {
        Add(found, path, fields);
      }
    } else if (type == "function_call") {
      AddCall(&item);
    } else if (type == "function_call_output") {
      std::string id;
      item.Text("call_id", &id);
      const json* output = item.Find("output");
      open_ = false;
      messages_.push_back(
          {{"role", "tool"},
           {"tool_call_id", id},
           {"content", output == nullptr ? "" : PartsText(*output, &item)}});
    } else if (type == "reasoning") {
      const json* content = item.Find("content");
      if (content == nullptr) content = item.Find("summary");
      const std::string text =
          content == nullptr ? "" : PartsText(*content, &item);
      if (!text.empty()) Assistant()["reasoning_content"] = text;
    } else {
      item.Fail("type", absl::StrCat(JsonExcerpt(type), " is not supported"));
    }
    fields->Keep(item.status());
  }

  json Take() { return std::move(messages_); }

 private:
  void AddMessage(JsonFields* item) {
    std::string role;
    item->Text("role", &role);
    const json* content = item->Find("content");
    if (content == nullptr) item->Fail("content", "is missing");
    if (!item->status().ok()) return;
    const std::string text = PartsText(*content, item);
    if (role == "assistant") {
      json& message = Assistant();
      message["content"] =
          message["content"].is_string()
              ? absl::StrCat(message["content"].get<std::string>(), text)
              : text;
      return;
    }
    open_ = false;
    messages_.push_back({{"role", role}, {"content", text}});
  }

  void AddCall(JsonFields* item) {
    std::string id, name, arguments = "{}";
    item->Text("call_id", &id);
    item->Text("name", &name);
    item->Text("arguments", &arguments);
    json& message = Assistant();
    message["tool_calls"].push_back(
        {{"id", id},
         {"type", "function"},
         {"function", {{"name", name}, {"arguments", arguments}}}});
  }

  json& Assistant() {
    if (!open_) {
      messages_.push_back({{"role", "assistant"}, {"content", nullptr}});
      open_ = true;
    }
    return messages_.back();
  }

  json messages_;
  const std::function<json(const std::string&)> find_;
  bool open_ = false;  // the last one is of the assistant and goes on
};

void TranslateTools(JsonFields* fields, json* out) {
  const json* tools = fields->Find("tools");
  if (tools != nullptr && !tools->is_array()) {
    fields->Fail("tools", "want a list");
  } else if (tools != nullptr && !tools->empty()) {
    json list = json::array();
    for (size_t i = 0; i < tools->size(); ++i) {
      JsonFields tool((*tools)[i], absl::StrCat("tools[", i, "]"));
      std::string type;
      tool.Text("type", &type);
      if (type != "function") {
        tool.Fail("type", "the server has no tools of its own: want function");
      }
      fields->Keep(tool.status());
      static constexpr FieldName kFields[] = {{"name", "name"},
                                              {"description", "description"},
                                              {"parameters", "parameters"},
                                              {"strict", "strict"}};
      json function = json::object();
      CopyFields((*tools)[i], kFields, &function);
      list.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    (*out)["tools"] = std::move(list);
  }
  const json* choice = fields->Find("tool_choice");
  if (choice == nullptr) return;
  if (!choice->is_object()) {
    (*out)["tool_choice"] = *choice;
    return;
  }
  JsonFields inner(*choice, "tool_choice");
  std::string type, name;
  inner.Text("type", &type);
  inner.Text("name", &name);
  if (type == "allowed_tools") {
    json allowed = {{"mode", choice->value("mode", json("auto"))},
                    {"tools", json::array()}};
    if (const json* listed = inner.Find("tools")) {
      for (const json& tool : *listed) {
        json function = {{"function", json::object()}};
        static constexpr FieldName kFields[] = {{"name", "name"}};
        CopyFields(tool, kFields, &function["function"]);
        allowed["tools"].push_back(std::move(function));
      }
    }
    (*out)["tool_choice"] = {{"type", type},
                             {"allowed_tools", std::move(allowed)}};
    return fields->Keep(inner.status());
  }
  if (type != "function") inner.Fail("type", "want function or allowed_tools");
  fields->Keep(inner.status());
  (*out)["tool_choice"] = {{"type", "function"},
                           {"function", {{"name", name}}}};
}

void TranslateFormat(JsonFields* fields, json* out) {
  const json* text = fields->Find("text");
  if (text == nullptr) return;
  JsonFields inner(*text, "text");
  const json* format = inner.Find("format");
  fields->Keep(inner.status());
  if (format == nullptr) return;
  JsonFields described(*format, "text.format");
  std::string type;
  described.Text("type", &type);
  fields->Keep(described.status());
  if (type != "json_schema") {
    (*out)["response_format"] = *format;
    return;
  }
  static constexpr FieldName kFields[] = {
      {"name", "name"}, {"schema", "schema"}, {"strict", "strict"}};
  json schema = json::object();
  CopyFields(*format, kFields, &schema);
  (*out)["response_format"] = {{"type", "json_schema"},
                               {"json_schema", std::move(schema)}};
}

// What the request goes on from: the conversation, and items.
struct EarlierTurns {
  json messages = json::array(), items = json::array();
};

absl::StatusOr<EarlierTurns> Earlier(const JsonFields& fields,
                                     ResponseStore* store, uint64_t client) {
  JsonFields reader = fields;
  std::string id;
  reader.Text("previous_response_id", &id);
  if (!reader.status().ok()) return reader.status();
  EarlierTurns earlier;
  if (id.empty()) return earlier;
  const absl::optional<ResponseStore::Entry> entry = store->Find(id, client);
  if (!entry.has_value()) {
    return FieldError(
        "previous_response_id",
        absl::StrCat(JsonExcerpt(id), " is not known here, or no longer"));
  }
  earlier.messages = json::parse(entry->messages, nullptr, false);
  earlier.items = json::parse(entry->input, nullptr, false);
  const json answer = json::parse(entry->answer, nullptr, false);
  for (const json& item : answer["output"]) earlier.items.push_back(item);
  return earlier;
}

// An item as it is told of later: with an id, and a text as a part.
json InputItem(json item) {
  if (!item.is_object()) return item;
  if (!item.contains("type")) item["type"] = "message";
  if (!item.contains("id")) item["id"] = RandomId("item_");
  const auto content = item.find("content");
  if (content != item.end() && content->is_string()) {
    *content = json::array(
        {{{"type", item["role"] == "assistant" ? "output_text" : "input_text"},
          {"text", *content}}});
  }
  return item;
}

absl::StatusOr<ResponsesRequest> ReadRequest(const json& body,
                                             const RequestLimits& limits,
                                             ResponseStore* store,
                                             uint64_t client) {
  JsonFields fields(body, "");
  if (!fields.status().ok()) return fields.status();
  for (const char* name : kUnknown) fields.Refuse(name, "is not supported");
  json out = json::object();
  CopyFields(body, kOwnFields, &out);
  CopyFields(body, kNames, &out);
  WEFT_ASSIGN_OR_RETURN(EarlierTurns earlier, Earlier(fields, store, client));
  ResponsesRequest request;
  request.input = std::move(earlier.items);
  Conversation conversation(std::move(earlier.messages),
                            [store, client](const std::string& id) -> json {
                              const auto entry = store->FindItem(id, client);
                              if (!entry.has_value()) return nullptr;
                              const json answer =
                                  json::parse(entry->answer, nullptr, false);
                              for (const json& item : answer["output"]) {
                                if (item["id"] == id) return item;
                              }
                              return nullptr;
                            });
  const json* input = fields.Find("input");
  if (input == nullptr || !(input->is_string() || input->is_array())) {
    return FieldError("input", "want a string or a list of items");
  }
  if (input->is_string()) {
    const json said = {{"role", "user"}, {"content", *input}};
    conversation.Add(said, "input", &fields);
    request.input.push_back(InputItem(said));
  } else {
    for (size_t i = 0; i < input->size(); ++i) {
      conversation.Add((*input)[i], absl::StrCat("input[", i, "]"), &fields);
      request.input.push_back(InputItem((*input)[i]));
    }
  }
  request.messages = conversation.Take();
  json messages = request.messages;
  std::string instructions;
  fields.Text("instructions", &instructions);
  if (!instructions.empty()) {
    const json system = {{"role", "system"}, {"content", instructions}};
    messages.insert(messages.begin(), system);
  }
  out["messages"] = std::move(messages);
  out["continue_final_message"] = false;
  TranslateTools(&fields, &out);
  TranslateFormat(&fields, &out);
  if (const json* reasoning = fields.Find("reasoning")) {
    static constexpr FieldName kFields[] = {{"effort", "reasoning_effort"}};
    CopyFields(*reasoning, kFields, &out);
  }
  const json* include = fields.Find("include");
  if (out.contains("top_logprobs") ||
      (include != nullptr && include->is_array() &&
       std::find(include->begin(), include->end(),
                 "message.output_text.logprobs") != include->end())) {
    out["logprobs"] = true;
  }
  fields.Bool("store", &request.store);
  if (!fields.status().ok()) return fields.status();
  request.repeated = json::object();
  for (const char* name : kRepeated) {
    const json* value = fields.Find(name);
    request.repeated[name] = value == nullptr ? json() : *value;
  }
  absl::StatusOr<ChatCompletionRequest> chat =
      ReadChatCompletionRequest(out, limits);
  if (!chat.ok()) return Names().Told(chat.status());
  request.chat = *std::move(chat);
  return request;
}

class ResponsesForm : public AnswerForm {
 public:
  ResponsesForm(const ServedModel& model, const Job& job,
                ResponsesRequest request, ResponseStore* store, uint64_t client)
      : model_(model),
        id_(RandomId("resp_")),
        created_(absl::ToUnixSeconds(absl::Now())),
        request_(std::move(request)),
        store_(store),
        client_(client),
        logprobs_(job.fields.top_logprobs.has_value()),
        top_(job.fields.top_logprobs.value_or(0)),
        reader_(std::move(ReadersFor(job, RandomId("")).front()),
                job.fields.stream ? PartReader::Calls::kInParts
                                  : PartReader::Calls::kAtTheirEnd) {}

  std::string Begin() override {
    std::string events;
    for (const char* type : {"response.created", "response.in_progress"}) {
      absl::StrAppend(&events,
                      Send({{"type", type},
                            {"response", Response("in_progress", nullptr)}}));
    }
    return events;
  }
  std::string Part(int64_t, const Event& event) override {
    std::string events;
    for (const AnswerPart& part : Take(event)) {
      absl::StrAppend(&events, Delta(part));
    }
    if (event.finished) absl::StrAppend(&events, CloseItem(!cut()));
    return events;
  }
  std::string End(const Usage& usage) override {
    const json response = Response(Status(), &usage);
    Keep(response);
    return Send({{"type", absl::StrCat("response.", Status())},
                 {"response", response}});
  }
  std::string Failure(const ApiError& error) override {
    json failed = Response("failed", nullptr);
    failed["error"] = {{"code", error.code.empty() ? error.type : error.code},
                       {"message", error.message}};
    std::string events =
        Send({{"type", "error"},
              {"code", error.code.empty() ? json() : json(error.code)},
              {"message", error.message},
              {"param", error.param.empty() ? json() : json(error.param)}});
    return events +
           Send({{"type", "response.failed"}, {"response", std::move(failed)}});
  }

  void Add(int64_t, const Event& event) override {
    for (const AnswerPart& part : Take(event)) Delta(part);
    if (event.finished) CloseItem(!cut());
  }
  int64_t bytes() const override { return bytes_; }
  void Whole(const Usage& usage, JsonStream* answer) override {
    const json response = Response(Status(), &usage);
    Keep(response);
    answer->Value(response);
  }

 private:
  struct Token {
    std::string text;
    json told;  // its log-probabilities, where they are asked for
  };

  // Both forms of answers are made by the same steps; a whole one forgets what
  // they say.
  std::vector<AnswerPart> Take(const Event& event) {
    reason_ = event.reason;
    bytes_ += static_cast<int64_t>(event.text.size());
    const json list = logprobs_
                          ? ChatLogprobs(model_.tokenizer(), event.tokens, top_)
                          : json::object();
    for (size_t i = 0; i < event.tokens.size(); ++i) {
      waiting_.push_back(
          {std::string(model_.tokenizer().TokenToBytes(event.tokens[i].id)),
           logprobs_ ? list["content"][i] : json()});
      if (logprobs_) {
        bytes_ += static_cast<int64_t>(JsonText(waiting_.back().told).size());
      }
    }
    return reader_.Read(event);
  }

  // Tokens come with text, but the reader may hold both back, and drops markers
  // and white space: so those of a part are known by its text, which is the
  // last that came.
  std::vector<Token> TokensOf(const std::string& text) {
    std::vector<Token> waiting = std::exchange(waiting_, {});
    std::string all;
    for (const Token& token : waiting) all += token.text;
    const size_t begin = all.rfind(text);
    if (begin == std::string::npos) return waiting;
    std::vector<Token> tokens;
    size_t at = 0;
    for (Token& token : waiting) {
      const size_t end = at + token.text.size();
      if (at >= begin + text.size()) {
        waiting_.push_back(std::move(token));
      } else if (end > begin) {
        tokens.push_back(std::move(token));
      }
      at = end;
    }
    return tokens;
  }

  bool cut() const { return WasCut(reason_); }
  const char* Status() const { return cut() ? "incomplete" : "completed"; }

  std::string Send(json event) {
    event["sequence_number"] = sequence_++;
    return NamedEvent(event);
  }

  json Response(const std::string& status, const Usage* usage) const {
    json response = {{"id", id_},
                     {"object", "response"},
                     {"created_at", created_},
                     {"status", status},
                     {"background", false},
                     {"error", nullptr},
                     {"incomplete_details", nullptr},
                     {"model", model_.id},
                     {"output", output_},
                     {"store", request_.store},
                     {"service_tier", "default"}};
    for (const auto& field : request_.repeated.items()) {
      response[field.key()] = field.value();
    }
    const auto otherwise = [&](const char* name, json value) {
      if (response[name].is_null()) response[name] = std::move(value);
    };
    otherwise("metadata", json::object());
    otherwise("reasoning", {{"effort", nullptr}, {"summary", nullptr}});
    otherwise("temperature", 1.0);
    otherwise("top_p", 1.0);
    otherwise("parallel_tool_calls", true);
    otherwise("text", json::object());
    if (!response["text"].contains("format")) {
      response["text"]["format"] = {{"type", "text"}};
    }
    otherwise("tool_choice", "auto");
    otherwise("tools", json::array());
    otherwise("truncation", "disabled");
    if (status == "incomplete") {
      response["incomplete_details"] = {{"reason", "max_output_tokens"}};
    }
    response["usage"] = nullptr;
    if (usage != nullptr) {
      response["usage"] = {
          {"input_tokens", usage->prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", usage->cached_tokens}}},
          {"output_tokens", usage->completion_tokens},
          {"output_tokens_details", {{"reasoning_tokens", reasoning_tokens_}}},
          {"total_tokens", usage->prompt_tokens + usage->completion_tokens}};
    }
    return response;
  }

  // The answer as a message of the conversation.
  json Said() const {
    json message = {{"role", "assistant"}, {"content", nullptr}};
    for (const json& item : output_) {
      const std::string type = item["type"];
      if (type == "message") {
        const std::string text = item["content"][0]["text"];
        message["content"] =
            message["content"].is_string()
                ? absl::StrCat(message["content"].get<std::string>(), text)
                : text;
      } else if (type == "reasoning") {
        message["reasoning_content"] = item["content"][0]["text"];
      } else if (item["status"] == "completed" || cut()) {
        // Others have been told as text, too.
        message["tool_calls"].push_back(
            {{"id", item["call_id"]},
             {"type", "function"},
             {"function",
              {{"name", item["name"]}, {"arguments", item["arguments"]}}}});
      }
    }
    return message;
  }

  void Keep(const json& response) {
    if (!request_.store) return;
    json messages = request_.messages;
    if (!output_.empty()) messages.push_back(Said());
    std::vector<std::string> items;
    for (const json& item : output_) items.push_back(item["id"]);
    store_->Put(id_, {client_, JsonText(messages), JsonText(response),
                      std::move(items), JsonText(request_.input)});
  }

  // The item that is being said, and its place; text lies in part 0.
  json& item() { return output_.back(); }
  int64_t index() const { return static_cast<int64_t>(output_.size()) - 1; }
  json Place(const char* type) {
    return {
        {"type", type}, {"item_id", item()["id"]}, {"output_index", index()}};
  }
  json PartPlace(const char* type) {
    json event = Place(type);
    event["content_index"] = 0;
    return event;
  }
  bool reasoning() const { return kind_ == Kind::kReasoning; }

  std::string OpenItem(const AnswerPart& part) {
    if (open_ && part.kind != Kind::kCall && part.kind == kind_) return "";
    std::string events = CloseItem();
    open_ = true;
    kind_ = part.kind;
    text_.clear();
    text_logprobs_ = json::array();
    json opened;
    if (part.kind == Kind::kCall) {
      opened = {{"type", "function_call"}, {"id", RandomId("fc_")},
                {"call_id", part.call.id}, {"name", part.call.name},
                {"arguments", ""},         {"status", "in_progress"}};
    } else if (part.kind == Kind::kReasoning) {
      opened = {{"type", "reasoning"},
                {"id", RandomId("rs_")},
                {"summary", json::array()},
                {"content", json::array()},
                {"status", "in_progress"}};
    } else {
      opened = {{"type", "message"},
                {"id", RandomId("msg_")},
                {"status", "in_progress"},
                {"role", "assistant"},
                {"content", json::array()}};
    }
    output_.push_back(std::move(opened));
    absl::StrAppend(&events, Send({{"type", "response.output_item.added"},
                                   {"output_index", index()},
                                   {"item", item()}}));
    if (part.kind == Kind::kCall) return events;
    json added = PartPlace("response.content_part.added");
    added["part"] = TextPart("");
    absl::StrAppend(&events, Send(std::move(added)));
    return events;
  }

  json TextPart(const std::string& text) const {
    if (reasoning()) return {{"type", "reasoning_text"}, {"text", text}};
    return {{"type", "output_text"},
            {"text", text},
            {"annotations", json::array()},
            {"logprobs", text.empty() ? json::array() : text_logprobs_}};
  }

  // `whole`: the model has said it to its end.
  std::string CloseItem(bool whole = true) {
    if (!open_) return "";
    open_ = false;
    std::string events;
    item()["status"] = whole ? "completed" : "incomplete";
    if (kind_ == Kind::kCall) {
      item()["arguments"] = text_;
      json done = Place("response.function_call_arguments.done");
      done["name"] = item()["name"];
      done["arguments"] = text_;
      absl::StrAppend(&events, Send(std::move(done)));
    } else {
      json done = PartPlace(reasoning() ? "response.reasoning_text.done"
                                        : "response.output_text.done");
      done["text"] = text_;
      if (!reasoning()) done["logprobs"] = text_logprobs_;
      absl::StrAppend(&events, Send(std::move(done)));
      item()["content"] = json::array({TextPart(text_)});
      json part = PartPlace("response.content_part.done");
      part["part"] = item()["content"][0];
      absl::StrAppend(&events, Send(std::move(part)));
    }
    absl::StrAppend(&events, Send({{"type", "response.output_item.done"},
                                   {"output_index", index()},
                                   {"item", item()}}));
    return events;
  }

  std::string Delta(const AnswerPart& part) {
    if (part.kind == Kind::kCall) return OpenItem(part);
    if (part.kind == Kind::kCallEnd) {
      waiting_.clear();
      return CloseItem(part.call.whole);
    }
    std::string events;
    json delta;
    if (part.kind == Kind::kArguments) {
      waiting_.clear();
      delta = Place("response.function_call_arguments.delta");
    } else {
      events = OpenItem(part);
      delta = PartPlace(reasoning() ? "response.reasoning_text.delta"
                                    : "response.output_text.delta");
      if (reasoning()) {
        reasoning_tokens_ += static_cast<int64_t>(TokensOf(part.text).size());
      } else {
        delta["logprobs"] = json::array();
        for (Token& token : TokensOf(part.text)) {
          if (!logprobs_) break;
          text_logprobs_.push_back(token.told);
          delta["logprobs"].push_back(std::move(token.told));
        }
      }
    }
    text_ += part.text;
    delta["delta"] = part.text;
    absl::StrAppend(&events, Send(std::move(delta)));
    return events;
  }

  const ServedModel& model_;
  const std::string id_;
  const int64_t created_;
  const ResponsesRequest request_;
  ResponseStore* store_;
  const uint64_t client_;
  const bool logprobs_;
  const int64_t top_;
  PartReader reader_;
  json output_ = json::array();
  std::vector<Token> waiting_;          // that no part has yet
  json text_logprobs_ = json::array();  // of the open item
  int64_t reasoning_tokens_ = 0;
  bool open_ = false;
  Kind kind_ = Kind::kText;
  std::string text_;  // of the open item
  FinishReason reason_ = FinishReason::kLength;
  int64_t sequence_ = 0;
  int64_t bytes_ = 0;
};

// All of them, the newest first unless `order` says otherwise.
void AnswerInputItems(const ResponseStore::Entry& entry, HttpCall* call) {
  json items = json::parse(entry.input, nullptr, false);
  if (call->Query("order") != "asc") std::reverse(items.begin(), items.end());
  const auto id = [&](const json& item) { return item.value("id", json()); };
  json list = {{"object", "list"}, {"data", items}};
  list["first_id"] = items.empty() ? json() : id(items.front());
  list["last_id"] = items.empty() ? json() : id(items.back());
  list["has_more"] = false;
  call->Answer(list);
}

ApiError NoSuchResponse(const std::string& id) {
  return HttpError(404, absl::StrCat("there is no response ", JsonExcerpt(id),
                                     " here, or no longer"));
}

}  // namespace

void AnswerResponses(const ServedModel& model, const ServiceLimits& limits,
                     ResponseStore* store, HttpCall* call) {
  if (model.encoder()) return call->Answer(WritesNoText(model));
  const absl::optional<json> body = call->Json();
  if (!body) return;
  const uint64_t client = ClientOf(*call);
  absl::StatusOr<ResponsesRequest> request =
      ReadRequest(*body, limits.request, store, client);
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  absl::StatusOr<Job> job = ChatJob(model, limits, WhileClientIsThere(call),
                                    std::move(request->chat));
  if (!job.ok()) return call->Answer(ToApiError(Names().Told(job.status())));
  job->names = Names();
  RunJob(
      model, limits, *std::move(job),
      [&](const Job& job) {
        return std::make_unique<ResponsesForm>(model, job, *std::move(request),
                                               store, client);
      },
      call);
}

void AnswerInputTokens(const ServedModel& model, const ServiceLimits& limits,
                       ResponseStore* store, HttpCall* call) {
  if (model.encoder()) return call->Answer(WritesNoText(model));
  const absl::optional<json> body = call->Json();
  if (!body) return;
  const absl::StatusOr<ResponsesRequest> request =
      ReadRequest(*body, limits.request, store, ClientOf(*call));
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  const absl::StatusOr<size_t> count =
      CountChatTokens(model, WhileClientIsThere(call), request->chat);
  if (!count.ok()) {
    return call->Answer(ToApiError(Names().Told(count.status())));
  }
  call->Answer(
      json{{"object", "response.input_tokens"}, {"input_tokens", *count}});
}

void AnswerStoredResponse(ResponseStore* store, HttpCall* call) {
  absl::string_view id = call->rest;
  const bool input = absl::ConsumeSuffix(&id, "/input_items");
  const absl::optional<ResponseStore::Entry> entry =
      store->Find(std::string(id), ClientOf(*call));
  if (!entry.has_value()) {
    return call->Answer(NoSuchResponse(std::string(id)));
  }
  if (input) return AnswerInputItems(*entry, call);
  call->response.set_content(entry->answer, "application/json");
}

void AnswerRemoveResponse(ResponseStore* store, HttpCall* call) {
  if (!store->Remove(call->rest, ClientOf(*call))) {
    return call->Answer(NoSuchResponse(call->rest));
  }
  call->Answer(
      json{{"id", call->rest}, {"object", "response"}, {"deleted", true}});
}

}  // namespace weft
