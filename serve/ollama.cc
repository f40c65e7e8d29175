#include "serve/ollama.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "serve/completions.h"
#include "serve/dialect.h"
#include "serve/embeddings.h"
#include "serve/generation.h"
#include "serve/json_fields.h"
#include "serve/openai_response.h"
#include "serve/prompts.h"
#include "text/answer/arguments.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

constexpr FieldName kOptions[] = {
    {"num_predict", "max_tokens"},
    {"temperature", "temperature"},
    {"top_k", "top_k"},
    {"top_p", "top_p"},
    {"min_p", "min_p"},
    {"repeat_penalty", "repeat_penalty"},
    {"repeat_last_n", "repeat_window"},
    {"presence_penalty", "presence_penalty"},
    {"frequency_penalty", "frequency_penalty"},
    {"stop", "stop"},
};

std::string Now() {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E9SZ", absl::Now(),
                          absl::UTCTimeZone());
}

int64_t Nanoseconds(double seconds) {
  return static_cast<int64_t>(seconds * 1e9);
}

// Options, format and stream, as OpenAI's fields.
void TranslateCommon(JsonFields* fields, json* out) {
  *out = {{"temperature", 0.8},    {"top_k", 40},    {"top_p", 0.9},
          {"repeat_penalty", 1.1}, {"stream", true}, {"max_tokens", -1}};
  if (const json* options = fields->Find("options")) {
    JsonFields inner(*options, "options");
    fields->Keep(inner.status());
    CopyFields(*options, kOwnFields, out);
    CopyFields(*options, kOptions, out);
  }
  // -2 fills the context.
  if ((*out)["max_tokens"] == -2) (*out)["max_tokens"] = -1;
  if (const json* stream = fields->Find("stream")) (*out)["stream"] = *stream;
  const json* format = fields->Find("format");
  if (format == nullptr || *format == "") return;
  if (*format == "json") {
    (*out)["response_format"] = {{"type", "json_object"}};
  } else if (format->is_object()) {
    (*out)["response_format"] = {{"type", "json_schema"},
                                 {"json_schema", {{"schema", *format}}}};
  } else {
    fields->Fail("format", "want \"json\" or a JSON schema");
  }
}

void RefuseImages(JsonFields* fields) {
  fields->Refuse("images", "the model reads text only");
}

// How a message is passed to the template: "think" is what templates call
// enable_thinking or, by words, reasoning_effort.
void TranslateThink(const JsonFields& fields, json* out) {
  const json* think = fields.Find("think");
  if (think == nullptr) return;
  if (think->is_boolean()) {
    (*out)["chat_template_kwargs"] = {{"enable_thinking", *think}};
  } else if (think->is_string()) {
    (*out)["chat_template_kwargs"] = {{"enable_thinking", true},
                                      {"reasoning_effort", *think}};
  }
}

// Calls have no ids there, so they get some: results follow in their order.
json TranslateMessages(JsonFields* fields, const json& messages) {
  json out = json::array();
  int64_t calls = 0, results = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    JsonFields message(messages[i], absl::StrCat("messages[", i, "]"));
    RefuseImages(&message);
    fields->Keep(message.status());
    if (!message.status().ok()) return out;
    json to = json::object();
    static constexpr FieldName kFields[] = {{"role", "role"},
                                            {"content", "content"},
                                            {"thinking", "reasoning_content"},
                                            {"tool_name", "name"},
                                            {"tool_call_id", "tool_call_id"}};
    CopyFields(messages[i], kFields, &to);
    if (const json* made = message.Find("tool_calls")) {
      if (!made->is_array()) {
        fields->Fail("messages", "tool_calls: want a list");
        return out;
      }
      json list = json::array();
      for (const json& call : *made) {
        JsonFields outer(call, "messages.tool_calls");
        const json* function = outer.Find("function");
        if (function == nullptr || !function->is_object()) {
          fields->Fail("messages", "tool_calls: want a function");
          return out;
        }
        std::string id = absl::StrCat("call_", calls++);
        outer.Text("id", &id);
        json named = {{"name", function->value("name", json())}};
        const json arguments = function->value("arguments", json::object());
        named["arguments"] =
            arguments.is_string() ? arguments : json(JsonText(arguments));
        list.push_back(
            {{"id", id}, {"type", "function"}, {"function", std::move(named)}});
      }
      to["tool_calls"] = std::move(list);
    }
    if (to.value("role", json()) == "tool" && !to.contains("tool_call_id")) {
      to["tool_call_id"] = absl::StrCat("call_", results++);
    }
    out.push_back(std::move(to));
  }
  return out;
}

enum class Kind { kChat, kGenerate };

class OllamaForm : public AnswerForm {
 public:
  OllamaForm(const Job& job, std::string name, Kind kind)
      : name_(std::move(name)),
        kind_(kind),
        reader_(std::move(ReadersFor(job, RandomId("")).front()),
                PartReader::Calls::kAtTheirEnd) {}

  const char* stream_type() const override { return "application/x-ndjson"; }
  std::string Part(int64_t, const Event& event) override {
    std::string lines;
    for (AnswerPart& part : Read(event)) {
      absl::StrAppend(&lines, JsonText(Said(part)), "\n");
    }
    if (event.finished) absl::StrAppend(&lines, JsonText(Last("", "")), "\n");
    return lines;
  }
  std::string End(const Usage&) override { return ""; }
  std::string Failure(const ApiError& error) override {
    return absl::StrCat(JsonText(OllamaError(error)), "\n");
  }
  // Lines of comments are not known there.
  std::string StillHere() override {
    return absl::StrCat(JsonText(Said({AnswerPart::Kind::kText, ""})), "\n");
  }

  void Add(int64_t, const Event& event) override {
    bytes_ += static_cast<int64_t>(event.text.size());
    for (AnswerPart& part : Read(event)) {
      if (part.kind == AnswerPart::Kind::kText) text_ += part.text;
      if (part.kind == AnswerPart::Kind::kReasoning) thinking_ += part.text;
      if (part.kind == AnswerPart::Kind::kCallEnd) {
        calls_.push_back(CallJson(part.call));
      }
    }
  }
  int64_t bytes() const override { return bytes_; }
  void Whole(const Usage&, JsonStream* answer) override {
    answer->Value(Last(text_, thinking_));
  }

 private:
  // Calls are told at once, with an object of arguments: so one that was cut
  // off before there was any is left out.
  std::vector<AnswerPart> Read(const Event& event) {
    last_ = event.usage;
    reason_ = event.reason;
    std::vector<AnswerPart> parts;
    for (AnswerPart& part : reader_.Read(event)) {
      const bool in_parts = part.kind == AnswerPart::Kind::kCall ||
                            part.kind == AnswerPart::Kind::kArguments;
      const bool cut =
          part.kind == AnswerPart::Kind::kCallEnd && !part.call.whole;
      if (!in_parts && !cut) parts.push_back(std::move(part));
    }
    return parts;
  }

  // As it was written, numbers too.
  static json CallJson(const answer::Answer::Call& call) {
    return {{"id", call.id},
            {"function",
             {{"name", call.name},
              {"arguments", answer::ArgumentsObject(call.arguments)}}}};
  }

  json Head(bool done) const {
    return {{"model", name_}, {"created_at", Now()}, {"done", done}};
  }

  json Said(const AnswerPart& part) const {
    json line = Head(false);
    const bool text = part.kind == AnswerPart::Kind::kText;
    const bool thinking = part.kind == AnswerPart::Kind::kReasoning;
    if (kind_ == Kind::kGenerate) {
      line["response"] = text ? part.text : "";
      if (thinking) line["thinking"] = part.text;
      return line;
    }
    json message = {{"role", "assistant"}, {"content", text ? part.text : ""}};
    if (thinking) message["thinking"] = part.text;
    if (part.kind == AnswerPart::Kind::kCallEnd) {
      message["tool_calls"] = json::array({CallJson(part.call)});
    }
    line["message"] = std::move(message);
    return line;
  }

  json Last(const std::string& text, const std::string& thinking) const {
    json line = Head(true);
    if (kind_ == Kind::kGenerate) {
      line["response"] = text;
      if (!thinking.empty()) line["thinking"] = thinking;
    } else {
      json message = {{"role", "assistant"}, {"content", text}};
      if (!thinking.empty()) message["thinking"] = thinking;
      if (!calls_.empty()) message["tool_calls"] = calls_;
      line["message"] = std::move(message);
    }
    const double total = absl::ToDoubleSeconds(absl::Now() - begun_);
    line["done_reason"] = WasCut(reason_) ? "length" : "stop";
    line["total_duration"] = Nanoseconds(total);
    line["load_duration"] = 0;
    line["prompt_eval_count"] = last_.prompt_tokens;
    line["prompt_eval_duration"] = Nanoseconds(last_.prompt_seconds);
    line["eval_count"] = last_.completion_tokens;
    line["eval_duration"] =
        Nanoseconds(std::max(0., total - last_.prompt_seconds));
    return line;
  }

  const std::string name_;
  const Kind kind_;
  const absl::Time begun_ = absl::Now();
  PartReader reader_;
  std::string text_, thinking_;
  json calls_ = json::array();
  Usage last_;
  FinishReason reason_ = FinishReason::kLength;
  int64_t bytes_ = 0;
};

struct OllamaRequest {
  std::string name;
  json body;  // OpenAI's, or null where there is nothing to generate
  bool raw = false;
  bool stream = true;
};

// The name that answers carry is the one that was asked for, as clients expect.
void ReadName(JsonFields* fields, const ServedModel& model,
              OllamaRequest* request) {
  request->name = model.id;
  fields->Text("model", &request->name);
}

absl::StatusOr<OllamaRequest> ReadChat(const ServedModel& model,
                                       const json& body) {
  JsonFields fields(body, "");
  if (!fields.status().ok()) return fields.status();
  OllamaRequest request;
  ReadName(&fields, model, &request);
  json translated;
  TranslateCommon(&fields, &translated);
  TranslateThink(fields, &translated);
  if (const json* tools = fields.Find("tools")) translated["tools"] = *tools;
  const json* messages = fields.Find("messages");
  if (messages != nullptr && !messages->is_array()) {
    fields.Fail("messages", "want a list of messages");
  } else if (messages != nullptr && !messages->empty()) {
    translated["messages"] = TranslateMessages(&fields, *messages);
    request.body = std::move(translated);
  }
  fields.Bool("stream", &request.stream);
  if (!fields.status().ok()) return fields.status();
  return request;
}

absl::StatusOr<OllamaRequest> ReadGenerate(const ServedModel& model,
                                           const json& body) {
  JsonFields fields(body, "");
  if (!fields.status().ok()) return fields.status();
  OllamaRequest request;
  ReadName(&fields, model, &request);
  json translated;
  TranslateCommon(&fields, &translated);
  TranslateThink(fields, &translated);
  std::string prompt, system, suffix;
  fields.Text("prompt", &prompt);
  fields.Text("system", &system);
  fields.Text("suffix", &suffix);
  fields.Bool("raw", &request.raw);
  fields.Bool("stream", &request.stream);
  RefuseImages(&fields);
  fields.Refuse("template", "the model's own is used: send the prompt as raw");
  fields.Refuse("context", "is not kept here: use /api/chat");
  if (!fields.status().ok()) return fields.status();
  if (prompt.empty()) return request;
  if (request.raw || !suffix.empty()) {
    request.raw = true;
    translated["prompt"] = std::move(prompt);
    if (!suffix.empty()) translated["suffix"] = std::move(suffix);
  } else {
    json messages = json::array();
    if (!system.empty()) {
      messages.push_back({{"role", "system"}, {"content", system}});
    }
    messages.push_back({{"role", "user"}, {"content", prompt}});
    translated["messages"] = std::move(messages);
  }
  request.body = std::move(translated);
  return request;
}

absl::StatusOr<Job> MakeJob(const ServedModel& model,
                            const ServiceLimits& limits,
                            const EncodeOptions& encode,
                            const OllamaRequest& request) {
  if (request.raw) {
    WEFT_ASSIGN_OR_RETURN(CompletionRequest completion,
                          ReadCompletionRequest(request.body, limits.request));
    return CompletionJob(model, limits, encode, std::move(completion));
  }
  WEFT_ASSIGN_OR_RETURN(
      ChatCompletionRequest chat,
      ReadChatCompletionRequest(request.body, limits.request));
  return ChatJob(model, limits, encode, std::move(chat));
}

// Nothing to say: Ollama loads the model then, which is there.
void AnswerLoaded(const OllamaRequest& request, Kind kind, HttpCall* call) {
  json answer = {{"model", request.name},
                 {"created_at", Now()},
                 {"done", true},
                 {"done_reason", "load"}};
  if (kind == Kind::kGenerate) {
    answer["response"] = "";
  } else {
    answer["message"] = {{"role", "assistant"}, {"content", ""}};
  }
  call->Answer(answer);
}

void Answer(const ServedModel& model, const ServiceLimits& limits, Kind kind,
            const absl::StatusOr<OllamaRequest>& request, HttpCall* call) {
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  if (request->body.is_null()) return AnswerLoaded(*request, kind, call);
  static constexpr FieldName kPaths[] = {
      {"format", "response_format.json_schema.schema"},
      {"format", "response_format"}};
  FieldNames names;
  names.Add(kOptions, "options.").Add(kOwnFields, "options.").Add(kPaths);
  absl::StatusOr<Job> job =
      MakeJob(model, limits, WhileClientIsThere(call), *request);
  if (!job.ok()) return call->Answer(ToApiError(names.Told(job.status())));
  job->names = std::move(names);
  RunJob(
      model, limits, *std::move(job),
      [name = request->name, kind](const Job& job) {
        return std::make_unique<OllamaForm>(job, name, kind);
      },
      call);
}

// Vectors of `inputs`, and the tokens they took.
absl::StatusOr<std::vector<std::vector<float>>> Vectors(
    const ServedModel& model, const ServiceLimits& limits, const json& body,
    HttpCall* call, int64_t* tokens) {
  WEFT_ASSIGN_OR_RETURN(EmbeddingsRequest asked,
                        ReadEmbeddingsRequest(body, limits.request));
  if (!JsonFields(body, "").Has("truncate")) asked.truncate = -1;
  WEFT_ASSIGN_OR_RETURN(
      std::vector<Request> requests,
      EmbeddingRequests(model, limits, WhileClientIsThere(call), asked));
  return Embed(model, limits, std::move(requests), asked.dimensions.value_or(0),
               *call, tokens);
}

std::string ParameterSize(int64_t parameters) {
  return parameters >= 1000000000
             ? absl::StrFormat("%.1fB", static_cast<double>(parameters) / 1e9)
             : absl::StrFormat("%.1fM", static_cast<double>(parameters) / 1e6);
}

json Details(const std::string& architecture, int64_t parameters) {
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", architecture},
          {"families", json::array({architecture})},
          {"parameter_size", ParameterSize(parameters)},
          {"quantization_level", ""}};
}

json Entry(const ModelSet::Info& model) {
  const ModelSet::Source& source = model.source;
  return {
      {"name", source.id},
      {"model", source.id},
      {"modified_at", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                                       absl::FromUnixSeconds(source.created),
                                       absl::UTCTimeZone())},
      {"size", source.file_bytes},
      {"digest", ""},
      {"details", Details(model.architecture, model.parameters)}};
}

}  // namespace

json OllamaError(const ApiError& error) { return {{"error", error.message}}; }

void AnswerOllamaChat(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call) {
  if (model.encoder()) return call->Answer(WritesNoText(model));
  const absl::optional<json> body = call->Json();
  if (!body) return;
  Answer(model, limits, Kind::kChat, ReadChat(model, *body), call);
}

void AnswerOllamaGenerate(const ServedModel& model, const ServiceLimits& limits,
                          HttpCall* call) {
  if (model.encoder()) return call->Answer(WritesNoText(model));
  const absl::optional<json> body = call->Json();
  if (!body) return;
  Answer(model, limits, Kind::kGenerate, ReadGenerate(model, *body), call);
}

void AnswerOllamaEmbed(const ServedModel& model, const ServiceLimits& limits,
                       HttpCall* call) {
  const absl::Time begun = absl::Now();
  const absl::optional<json> body = call->Json();
  if (!body) return;
  int64_t tokens = 0;
  const absl::StatusOr<std::vector<std::vector<float>>> vectors =
      Vectors(model, limits, *body, call, &tokens);
  if (!vectors.ok()) return call->Answer(GenerationError(vectors.status()));
  OllamaRequest request;
  JsonFields fields(*body, "");
  ReadName(&fields, model, &request);
  call->Answer(
      json{{"model", request.name},
           {"embeddings", *vectors},
           {"total_duration", absl::ToInt64Nanoseconds(absl::Now() - begun)},
           {"load_duration", 0},
           {"prompt_eval_count", tokens}});
}

void AnswerOllamaEmbedding(const ServedModel& model,
                           const ServiceLimits& limits, HttpCall* call) {
  const absl::optional<json> body = call->Json();
  if (!body) return;
  JsonFields fields(*body, "");
  std::string prompt;
  fields.Text("prompt", &prompt);
  if (!fields.status().ok()) return call->Answer(ToApiError(fields.status()));
  int64_t tokens = 0;
  const absl::StatusOr<std::vector<std::vector<float>>> vectors =
      Vectors(model, limits, json{{"input", prompt}}, call, &tokens);
  if (!vectors.ok()) return call->Answer(GenerationError(vectors.status()));
  call->Answer(json{{"embedding", vectors->front()}});
}

json OllamaTags(const std::vector<ModelSet::Info>& models) {
  json list = json::array();
  for (const ModelSet::Info& model : models) list.push_back(Entry(model));
  return {{"models", std::move(list)}};
}

json OllamaRunning(const std::vector<ModelSet::Info>& models) {
  json list = json::array();
  for (const ModelSet::Info& model : models) {
    if (model.state != ModelSet::State::kReady) continue;
    json entry = Entry(model);
    entry["expires_at"] = "9999-12-31T23:59:59Z";
    entry["size_vram"] = 0;
    entry["context_length"] = model.context;
    list.push_back(std::move(entry));
  }
  return {{"models", std::move(list)}};
}

void AnswerOllamaShow(const ServedModel& model, HttpCall* call) {
  const ModelInfo& info = model.engine().plan().model;
  json capabilities =
      json::array({model.encoder() ? "embedding" : "completion"});
  if (model.customs.shows_tools) capabilities.push_back("tools");
  if (!model.encoder() && model.tokenizer().fill_middle() >= 0) {
    capabilities.push_back("insert");
  }
  const std::string& architecture = info.architecture;
  json numbers = {{"general.architecture", architecture},
                  {"general.parameter_count", info.parameters}};
  numbers[architecture + ".context_length"] = info.context_length;
  numbers[architecture + ".embedding_length"] = info.embedding_length;
  call->Answer(json{{"modelfile", absl::StrCat("FROM ", model.id)},
                    {"parameters", ""},
                    {"template", model.chat_template->source()},
                    {"details", Details(info.architecture, info.parameters)},
                    {"model_info", std::move(numbers)},
                    {"capabilities", std::move(capabilities)}});
}

}  // namespace weft
