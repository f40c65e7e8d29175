#include "serve/native_completion.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "serve/completions.h"
#include "serve/dialect.h"
#include "serve/json_fields.h"
#include "serve/openai_response.h"
#include "serve/prompts.h"
#include "serve/request_log.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

constexpr FieldName kNames[] = {
    {"prompt", "prompt"},
    {"stream", "stream"},
    {"n_predict", "max_tokens"},
    {"temperature", "temperature"},
    {"top_k", "top_k"},
    {"top_p", "top_p"},
    {"min_p", "min_p"},
    {"repeat_penalty", "repeat_penalty"},
    {"repeat_last_n", "repeat_window"},
    {"presence_penalty", "presence_penalty"},
    {"frequency_penalty", "frequency_penalty"},
    {"stop", "stop"},
    {"grammar", "grammar"},
    {"ignore_eos", "ignore_eos"},
    {"return_progress", "return_progress"},
    {"n_probs", "logprobs"},
};

// What would change the answer and is not there, and what changes nothing.
constexpr struct {
  const char* name;
  double neutral;
} kUnknownSamplers[] = {
    {"mirostat", 0},       {"dry_multiplier", 0}, {"xtc_probability", 0},
    {"dynatemp_range", 0}, {"typical_p", 1},      {"top_n_sigma", -1},
};

// [[id, bias], ..], where false forbids the token, or an object.
json LogitBias(const json& bias, JsonFields* fields) {
  if (!bias.is_array()) return bias;
  json object = json::object();
  for (const json& pair : bias) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer()) {
      fields->Fail("logit_bias", "want pairs of a token id and a number");
      return object;
    }
    object[pair[0].dump()] = pair[1] == false ? json(-100) : pair[1];
  }
  return object;
}

struct NativeRequest {
  CompletionRequest completion;
  bool tokens = false;  // ids are wanted
  FieldNames names;
};

absl::StatusOr<NativeRequest> ReadRequest(const json& body, const json* prompt,
                                          const RequestLimits& limits) {
  JsonFields fields(body, "");
  json translated = {{"temperature", 0.8},
                     {"top_k", 40},
                     {"top_p", 0.95},
                     {"min_p", 0.05},
                     {"max_tokens", -1}};
  CopyFields(body, kOwnFields, &translated);
  CopyFields(body, kNames, &translated);
  if (prompt != nullptr) translated["prompt"] = *prompt;
  // Numbers that mean "none".
  if (translated.contains("seed") && translated["seed"] == -1) {
    translated.erase("seed");
  }
  if (translated["max_tokens"] == -2) translated["max_tokens"] = -1;
  if (translated.contains("logprobs") && translated["logprobs"] == 0) {
    translated.erase("logprobs");
  }
  if (const json* bias = fields.Find("logit_bias")) {
    translated["logit_bias"] = LogitBias(*bias, &fields);
  }
  if (const json* schema = fields.Find("json_schema")) {
    translated["response_format"] = {{"type", "json_schema"},
                                     {"json_schema", {{"schema", *schema}}}};
  }
  for (const auto& sampler : kUnknownSamplers) {
    const json* value = fields.Find(sampler.name);
    if (value != nullptr && *value != sampler.neutral) {
      fields.Fail(sampler.name, "there is no such sampler here: leave it out");
    }
  }
  NativeRequest request;
  static constexpr FieldName kPaths[] = {
      {"json_schema", "response_format.json_schema.schema"},
      {"json_schema", "response_format"}};
  request.names.Add(kNames).Add(kPaths);
  fields.Bool("return_tokens", &request.tokens);
  if (!fields.status().ok()) return fields.status();
  absl::StatusOr<CompletionRequest> completion =
      ReadCompletionRequest(translated, limits);
  if (!completion.ok()) return request.names.Told(completion.status());
  request.completion = *std::move(completion);
  return request;
}

class NativeForm : public AnswerForm {
 public:
  NativeForm(const ServedModel& model, const Job& job, bool tokens)
      : model_(model),
        tokens_(tokens),
        logprobs_(job.fields.top_logprobs.has_value()),
        progress_(job.fields.progress),
        top_(job.fields.top_logprobs.value_or(0)),
        stops_(job.fields.stop),
        settings_(JobJson(job)),
        choices_(job.choices()) {
    settings_.erase("prompts");
  }

  std::string Part(int64_t index, const Event& event) override {
    Take(&choices_[index], event);
    if (event.finished) {
      const json last = Last(index, event.text, ids_of(event), Logprobs(event));
      return ServerSentEvent(last);
    }
    json part = {{"index", index},
                 {"content", event.text},
                 {"tokens", ids_of(event)},
                 {"stop", false},
                 {"tokens_predicted", event.usage.completion_tokens},
                 {"tokens_evaluated", event.usage.prompt_tokens}};
    if (logprobs_) part["completion_probabilities"] = Logprobs(event);
    if (progress_ && event.usage.completion_tokens <= 1) {
      part["prompt_progress"] = ProgressJson(event.usage, begun_);
    }
    return ServerSentEvent(part);
  }
  std::string End(const Usage&) override { return ""; }
  std::string Failure(const ApiError& error) override {
    return ServerSentEvent(ErrorJson(error));
  }

  void Add(int64_t index, const Event& event) override {
    Choice& choice = choices_[index];
    Take(&choice, event);
    choice.text += event.text;
    bytes_ += static_cast<int64_t>(event.text.size());
    if (tokens_) {
      for (json& id : ids_of(event)) choice.tokens.push_back(std::move(id));
      bytes_ += static_cast<int64_t>(event.tokens.size() * 8);
    }
    if (!logprobs_) return;
    for (json& token : Logprobs(event)) {
      bytes_ += static_cast<int64_t>(JsonText(token).size());
      choice.logprobs.push_back(std::move(token));
    }
  }
  int64_t bytes() const override { return bytes_; }
  void Whole(const Usage&, JsonStream* answer) override {
    const bool many = choices_.size() > 1;
    if (many) answer->Open('[');
    for (size_t i = 0; i < choices_.size(); ++i) {
      const Choice& choice = choices_[i];
      answer->Value(Last(static_cast<int64_t>(i), choice.text, choice.tokens,
                         choice.logprobs));
    }
    if (many) answer->Close();
  }

 private:
  struct Choice {
    std::string text;
    json tokens = json::array(), logprobs = json::array();
    Usage usage;
    FinishReason reason = FinishReason::kLength;
    int stop_string = -1;
  };

  static void Take(Choice* choice, const Event& event) {
    choice->usage = event.usage;
    choice->reason = event.reason;
    choice->stop_string = event.stop_string;
  }

  json ids_of(const Event& event) const {
    json ids = json::array();
    if (!tokens_) return ids;
    for (const GeneratedToken& token : event.tokens) ids.push_back(token.id);
    return ids;
  }

  json Logprobs(const Event& event) const {
    json list = json::array();
    if (!logprobs_) return list;
    const json chat = ChatLogprobs(model_.tokenizer(), event.tokens, top_);
    for (size_t i = 0; i < event.tokens.size(); ++i) {
      json token = chat["content"][i];
      token["id"] = event.tokens[i].id;
      for (size_t k = 0; k < token["top_logprobs"].size(); ++k) {
        token["top_logprobs"][k]["id"] = event.tokens[i].top[k].token;
      }
      list.push_back(std::move(token));
    }
    return list;
  }

  static const char* StopType(FinishReason reason) {
    switch (reason) {
      case FinishReason::kEndOfText:
      case FinishReason::kStopToken:
        return "eos";
      case FinishReason::kStopString:
        return "word";
      default:
        return "limit";
    }
  }

  json Last(int64_t index, const std::string& text, json tokens,
            json logprobs) const {
    const Choice& choice = choices_[index];
    const Usage& usage = choice.usage;
    const double prompt_ms = 1000 * usage.prompt_seconds;
    json last = {{"index", index},
                 {"content", text},
                 {"tokens", std::move(tokens)},
                 {"stop", true},
                 {"model", model_.id},
                 {"tokens_predicted", usage.completion_tokens},
                 {"tokens_evaluated", usage.prompt_tokens},
                 {"tokens_cached", usage.cached_tokens},
                 {"truncated", choice.reason == FinishReason::kContext},
                 {"stop_type", StopType(choice.reason)},
                 {"stopping_word",
                  choice.stop_string >= 0 ? stops_[choice.stop_string] : ""},
                 {"generation_settings", settings_},
                 {"timings",
                  {{"prompt_n", usage.prompt_tokens - usage.cached_tokens},
                   {"prompt_ms", prompt_ms},
                   {"predicted_n", usage.completion_tokens}}}};
    if (logprobs_) last["completion_probabilities"] = std::move(logprobs);
    return last;
  }

  const ServedModel& model_;
  const bool tokens_, logprobs_, progress_;
  const int64_t top_;
  const std::vector<std::string> stops_;
  json settings_;
  std::vector<Choice> choices_;
  const absl::Time begun_ = absl::Now();
  int64_t bytes_ = 0;
};

void Answer(const ServedModel& model, const ServiceLimits& limits,
            absl::StatusOr<NativeRequest> request, HttpCall* call) {
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  absl::StatusOr<Job> job = CompletionJob(
      model, limits, WhileClientIsThere(call), std::move(request->completion));
  if (!job.ok()) return call->Answer(ToApiError(job.status()));
  RunJob(
      model, limits, *std::move(job),
      [&model, tokens = request->tokens](const Job& job) {
        return std::make_unique<NativeForm>(model, job, tokens);
      },
      call);
}

absl::StatusOr<NativeRequest> ReadInfill(const json& body,
                                         const RequestLimits& limits) {
  JsonFields fields(body, "");
  std::string before, after, prompt, text;
  fields.Text("input_prefix", &before);
  fields.Text("input_suffix", &after);
  fields.Text("prompt", &prompt);
  if (const json* extra = fields.Find("input_extra")) {
    if (!extra->is_array()) fields.Fail("input_extra", "want a list");
    for (const json& file : *extra) {
      JsonFields inner(file, "input_extra");
      std::string name, content;
      inner.Text("filename", &name);
      inner.Text("text", &content);
      fields.Keep(inner.status());
      absl::StrAppend(&text, name, name.empty() ? "" : "\n", content, "\n");
    }
  }
  if (!fields.status().ok()) return fields.status();
  const json joined = absl::StrCat(text, before, prompt);
  WEFT_ASSIGN_OR_RETURN(NativeRequest request,
                        ReadRequest(body, &joined, limits));
  request.completion.suffix = std::move(after);
  return request;
}

}  // namespace

void AnswerNativeCompletion(const ServedModel& model,
                            const ServiceLimits& limits, HttpCall* call) {
  if (model.encoder()) return call->Answer(WritesNoText(model));
  const absl::optional<json> body = call->Json();
  if (!body) return;
  Answer(model, limits, ReadRequest(*body, nullptr, limits.request), call);
}

void AnswerInfill(const ServedModel& model, const ServiceLimits& limits,
                  HttpCall* call) {
  if (model.encoder()) return call->Answer(WritesNoText(model));
  const absl::optional<json> body = call->Json();
  if (!body) return;
  Answer(model, limits, ReadInfill(*body, limits.request), call);
}

}  // namespace weft
