#include "serve/service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/generation/sampler.h"
#include "serve/completions.h"
#include "serve/embeddings.h"
#include "serve/json_fields.h"
#include "serve/messages.h"
#include "serve/native_completion.h"
#include "serve/ollama.h"
#include "serve/page/page.h"
#include "serve/prompts.h"
#include "serve/rerank.h"
#include "serve/responses.h"
#include "serve/slot_routes.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

// As --version tells it.
constexpr char kVersion[] = "0.1.0";

// What the model is asked: each route with its answer, and how it writes
// errors.
struct Generating {
  const char* path;
  void (*answer)(const ServedModel&, const ServiceLimits&, HttpCall*);
  ErrorForm error_form = ErrorJson;
};
constexpr Generating kGenerating[] = {
    {"/v1/completions", AnswerCompletion},
    {"/completions", AnswerCompletion},
    {"/v1/chat/completions", AnswerChat},
    {"/chat/completions", AnswerChat},
    {"/v1/embeddings", AnswerEmbeddings},
    {"/embeddings", AnswerEmbeddings},
    {"/v1/messages", AnswerMessages, MessagesError},
    {"/messages", AnswerMessages, MessagesError},
    {"/v1/messages/count_tokens", AnswerCountTokens, MessagesError},
    {"/messages/count_tokens", AnswerCountTokens, MessagesError},
    {"/v1/rerank", AnswerRerank},
    {"/rerank", AnswerRerank},
    {"/v1/reranking", AnswerRerank},
    {"/reranking", AnswerRerank},
    {"/completion", AnswerNativeCompletion},
    {"/infill", AnswerInfill},
    {"/api/chat", AnswerOllamaChat, OllamaError},
    {"/api/generate", AnswerOllamaGenerate, OllamaError},
    {"/api/embed", AnswerOllamaEmbed, OllamaError},
    {"/api/embeddings", AnswerOllamaEmbedding, OllamaError},
};

json ModelJson(const ServedModel& model) {
  return {{"id", model.id},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "weft"},
          {"context_length", model.capacity()}};
}

}  // namespace

void Service::AddRoutes(HttpServer* server) {
  server_ = server;
  const auto add = [&](const char* method, const char* path, bool open,
                       void (Service::*answer)(HttpCall*) const) {
    server->Add(method, path, open,
                [this, answer](HttpCall& call) { (this->*answer)(&call); });
  };
  server->Add("GET", "/", true, [](HttpCall& call) {
    call.response.set_header("Content-Security-Policy", ChatPagePolicy());
    call.response.set_content(ChatPage(), "text/html; charset=utf-8");
  });
  add("GET", "/health", true, &Service::Health);
  add("GET", "/metrics", false, &Service::Metrics);
  add("GET", "/props", false, &Service::Props);
  for (const char* path : {"/v1/models", "/models"}) {
    add("GET", path, false, &Service::Models);
  }
  for (const char* path : {"/v1/models/*", "/models/*"}) {
    add("GET", path, false, &Service::Model);
  }
  for (const Generating& route : kGenerating) {
    server->Add(
        "POST", route.path, false,
        [this, answer = route.answer](HttpCall& call) {
          answer(model_, limits_, &call);
        },
        route.error_form);
  }
  for (const std::string path : {"/v1/responses", "/responses"}) {
    server->Add("POST", path, false, [this](HttpCall& call) {
      AnswerResponses(model_, limits_, &responses_, &call);
    });
    server->Add("GET", path + "/*", false, [this](HttpCall& call) {
      AnswerStoredResponse(&responses_, &call);
    });
    server->Add("DELETE", path + "/*", false, [this](HttpCall& call) {
      AnswerRemoveResponse(&responses_, &call);
    });
  }
  server->Add("GET", "/slots", false,
              [this](HttpCall& call) { AnswerSlots(model_, &call); });
  server->Add("POST", "/slots/*", false, [this](HttpCall& call) {
    AnswerSlotAction(model_, limits_, &call);
  });
  const auto ollama = [&](const char* method, const char* path,
                          std::function<void(HttpCall&)> answer) {
    server->Add(method, path, false, std::move(answer), OllamaError);
  };
  ollama("GET", "/api/version", [](HttpCall& call) {
    call.Answer(json{{"version", kVersion}});
  });
  ollama("GET", "/api/tags",
         [this](HttpCall& call) { call.Answer(OllamaTags(model_)); });
  ollama("GET", "/api/ps",
         [this](HttpCall& call) { call.Answer(OllamaRunning(model_)); });
  ollama("POST", "/api/show",
         [this](HttpCall& call) { AnswerOllamaShow(model_, &call); });
  add("POST", "/tokenize", false, &Service::Tokenize);
  add("POST", "/detokenize", false, &Service::Detokenize);
  add("POST", "/apply-template", false, &Service::ApplyTemplate);
  server->SetObserver([this](const std::string& route, int status) {
    counters_.Count(route, status);
  });
}

void Service::Health(HttpCall* call) const {
  const std::string why = server_->refusal();
  if (!why.empty()) return call->Answer(HttpError(503, why));
  // Every request would be refused.
  const absl::Status file = model_.engine().CheckFiles();
  if (!file.ok())
    return call->Answer(HttpError(503, std::string(file.message())));
  call->Answer(json{{"status", "ok"}});
}

void Service::Models(HttpCall* call) const {
  call->Answer(
      json{{"object", "list"}, {"data", json::array({ModelJson(model_)})}});
}

void Service::Model(HttpCall* call) const {
  if (call->rest != model_.id) {
    ApiError error = HttpError(
        404, absl::StrCat("there is no such model here, only ", model_.id));
    error.param = "model";
    error.code = "model_not_found";
    return call->Answer(error);
  }
  call->Answer(ModelJson(model_));
}

SchedulerStats Service::Stats() const { return model_.scheduler->GetStats(); }

void Service::Props(HttpCall* call) const {
  const Plan& plan = model_.engine().plan();
  const GenerationFields defaults;
  json suggested = json::object();
  for (const SuggestedField& field : SuggestedFields()) {
    const auto it = plan.model.suggested_sampling.find(std::string(field.key));
    if (it != plan.model.suggested_sampling.end()) {
      suggested[std::string(field.name)] = it->second;
    }
  }
  call->Answer(json{{"model", model_.id},
                    {"architecture", plan.model.architecture},
                    {"parameters", plan.model.parameters},
                    {"context", plan.context()},
                    {"capacity", model_.capacity()},
                    {"slots", Stats().slots},
                    {"sampling_order",
                     {"penalties", "top_k", "top_p", "min_p", "temperature"}},
                    {"repeat_window", defaults.sampling.repeat_window},
                    {"suggested_sampling", std::move(suggested)},
                    {"chat_template", model_.chat_template->source()},
                    {"bos_token", model_.tokenizer().bos()},
                    {"eos_token", model_.tokenizer().eos()}});
}

void Service::Metrics(HttpCall* call) const {
  call->response.set_content(
      absl::StrCat(SchedulerMetrics(Stats()), counters_.Text(),
                   Metric("weft_http_connections", "Connections that are open.",
                          "gauge", server_->connections()),
                   Metric("process_resident_memory_bytes", "Memory in use.",
                          "gauge", static_cast<double>(ResidentBytes()))),
      "text/plain; version=0.0.4; charset=utf-8");
}

void Service::Tokenize(HttpCall* call) const {
  absl::StatusOr<TokenizeRequest> request = ParseTokenizeRequest(call->body);
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  const Tokenizer& tokenizer = model_.tokenizer();
  EncodeOptions options = WhileClientIsThere(call);
  options.add_special = request->add_special;
  options.parse_special = request->parse_special;
  absl::StatusOr<std::vector<int32_t>> ids =
      tokenizer.Encode(request->content, options);
  if (!ids.ok()) return call->Answer(ToApiError(ids.status()));
  // Some thirty bytes a token: written as they are made.
  call->AnswerJson([&tokenizer, ids = *std::move(ids),
                    with_pieces = request->with_pieces](JsonStream* answer) {
    answer->Open('{');
    answer->Key("tokens");
    answer->Open('[');
    for (const int32_t id : ids) {
      if (answer->broken()) return;
      answer->Raw(
          with_pieces
              ? absl::StrCat("{\"id\":", id, ",\"piece\":",
                             JsonText(std::string(tokenizer.TokenToBytes(id))),
                             "}")
              : absl::StrCat(id));
    }
    answer->Close();
    answer->Close();
  });
}

void Service::Detokenize(HttpCall* call) const {
  absl::StatusOr<DetokenizeRequest> request =
      ParseDetokenizeRequest(call->body);
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  const Tokenizer& tokenizer = model_.tokenizer();
  int64_t bytes = 0;
  for (const int32_t id : request->tokens) {
    if (!tokenizer.InRange(id)) continue;  // Decode tells it
    bytes += static_cast<int64_t>(tokenizer.TokenToBytes(id).size());
  }
  if (bytes > limits_.answer_bytes) {
    return call->Answer(ToApiError(FieldError(
        "tokens",
        absl::StrCat("are ", bytes, " bytes of text: at most ",
                     limits_.answer_bytes, " (--max-answer-bytes)"))));
  }
  absl::StatusOr<std::string> text = tokenizer.Decode(request->tokens, {});
  if (!text.ok()) {
    return call->Answer(
        ToApiError(FieldError("tokens", text.status().message())));
  }
  call->AnswerJson([text = *std::move(text)](JsonStream* answer) {
    answer->Open('{');
    answer->Key("content");
    answer->Text(text);
    answer->Close();
  });
}

void Service::ApplyTemplate(HttpCall* call) const {
  absl::StatusOr<ChatCompletionRequest> request =
      ParseTemplateRequest(call->body);
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  absl::StatusOr<std::vector<TextSegment>> segments =
      RenderChat(model_, *request);
  if (!segments.ok()) return call->Answer(ToApiError(segments.status()));
  call->AnswerJson([prompt = JoinSegments(*segments)](JsonStream* answer) {
    answer->Open('{');
    answer->Key("prompt");
    answer->Text(prompt);
    answer->Close();
  });
}

}  // namespace weft
