#include "serve/service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "serve/adapter_routes.h"
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
#include "serve/text_routes.h"

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

json ModelJson(const ModelSet::Info& model) {
  json result = {{"id", model.source.id},
                 {"object", "model"},
                 {"created", model.source.created},
                 {"owned_by", "weft"},
                 {"status", std::string(Name(model.state))}};
  if (model.context > 0) result["context_length"] = model.context;
  if (model.bytes > 0) result["memory_bytes"] = model.bytes;
  if (!model.error.empty()) result["error"] = model.error;
  if (!model.source.aliases.empty()) result["aliases"] = model.source.aliases;
  return result;
}

ApiError ModelError(const absl::Status& status) {
  ApiError error = ToApiError(status);
  if (error.status == 404) {
    error.param = "model";
    error.code = "model_not_found";
  }
  return error;
}

// The model that a request names: in its body, or as ?model=. Empty: it names
// none. Nothing when the body is no JSON, which is answered.
absl::optional<std::string> ModelName(HttpCall* call) {
  std::string name =
      DecodePercent(call->Query("model")).value_or("no such name");
  if (!name.empty() || call->body.empty()) return name;
  const absl::optional<json> body = call->Json();
  if (!body) return absl::nullopt;
  if (!body->is_object()) return name;  // the route says what it wants
  for (const char* field : {"model", "name"}) {
    const auto it = body->find(field);
    if (it != body->end() && it->is_string()) return it->get<std::string>();
  }
  return name;
}

void AnswerProps(const ServedModel& model, HttpCall* call) {
  const Plan& plan = model.engine().plan();
  const GenerationFields defaults;
  json suggested = json::object();
  for (const SuggestedField& field : SuggestedFields()) {
    const auto it = plan.model.suggested_sampling.find(std::string(field.key));
    if (it != plan.model.suggested_sampling.end()) {
      suggested[std::string(field.name)] = it->second;
    }
  }
  call->Answer(json{{"model", model.id},
                    {"architecture", plan.model.architecture},
                    {"parameters", plan.model.parameters},
                    {"context", plan.context()},
                    {"capacity", model.capacity()},
                    {"slots", model.scheduler->GetStats().slots},
                    {"sampling_order",
                     {"penalties", "top_k", "top_p", "min_p", "temperature"}},
                    {"repeat_window", defaults.sampling.repeat_window},
                    {"suggested_sampling", std::move(suggested)},
                    {"chat_template", model.chat_template->source()},
                    {"bos_token", model.tokenizer().bos()},
                    {"eos_token", model.tokenizer().eos()}});
}

}  // namespace

void Service::Ask(const Question& question, HttpCall* call) {
  std::string name;
  if (models_.by_name()) {
    absl::optional<std::string> named = ModelName(call);
    if (!named) return;
    name = *std::move(named);
  }
  absl::StatusOr<std::shared_ptr<const ServedModel>> model =
      models_.Get(name, [call] { return call->connection.PeerGone(); });
  if (!model.ok()) return call->Answer(ModelError(model.status()));
  call->kept = *model;
  question(**model, call);
}

void Service::AddRoutes(HttpServer* server) {
  server_ = server;
  const auto add = [&](const char* method, const char* path, bool open,
                       void (Service::*answer)(HttpCall*)) {
    server->Add(method, path, open,
                [this, answer](HttpCall& call) { (this->*answer)(&call); });
  };
  const auto ask = [&](const char* method, const std::string& path,
                       Question question, ErrorForm error_form = ErrorJson) {
    server->Add(
        method, path, false,
        [this, question = std::move(question)](HttpCall& call) {
          Ask(question, &call);
        },
        error_form);
  };
  // What also goes by the owner's limits.
  const auto within = [this](void (*answer)(const ServedModel&,
                                            const ServiceLimits&, HttpCall*)) {
    return [this, answer](const ServedModel& model, HttpCall* call) {
      answer(model, limits_, call);
    };
  };
  server->Add("GET", "/", true, [](HttpCall& call) {
    call.response.set_header("Content-Security-Policy", ChatPagePolicy());
    call.response.set_content(ChatPage(), "text/html; charset=utf-8");
  });
  add("GET", "/health", true, &Service::Health);
  add("GET", "/metrics", false, &Service::Metrics);
  for (const char* path : {"/v1/models", "/models"}) {
    add("GET", path, false, &Service::Models);
  }
  for (const char* path : {"/v1/models/*", "/models/*"}) {
    add("GET", path, false, &Service::Model);
  }
  for (const Generating& route : kGenerating) {
    ask("POST", route.path, within(route.answer), route.error_form);
  }
  for (const std::string path : {"/v1/responses", "/responses"}) {
    ask("POST", path, [this](const ServedModel& model, HttpCall* call) {
      AnswerResponses(model, limits_, &responses_, call);
    });
    ask("POST", path + "/input_tokens",
        [this](const ServedModel& model, HttpCall* call) {
          AnswerInputTokens(model, limits_, &responses_, call);
        });
    server->Add("GET", path + "/*", false, [this](HttpCall& call) {
      AnswerStoredResponse(&responses_, &call);
    });
    server->Add("DELETE", path + "/*", false, [this](HttpCall& call) {
      AnswerRemoveResponse(&responses_, &call);
    });
  }
  ask("GET", "/lora-adapters", AnswerAdapters);
  ask("POST", "/lora-adapters", AnswerSetAdapters);
  ask("GET", "/slots", AnswerSlots);
  ask("POST", "/slots/*", within(AnswerSlotAction));
  const auto ollama = [&](const char* path,
                          std::function<void(HttpCall&)> answer) {
    server->Add("GET", path, false, std::move(answer), OllamaError);
  };
  ollama("/api/version", [](HttpCall& call) {
    call.Answer(json{{"version", kVersion}});
  });
  ollama("/api/tags",
         [this](HttpCall& call) { call.Answer(OllamaTags(models_.List())); });
  ollama("/api/ps", [this](HttpCall& call) {
    call.Answer(OllamaRunning(models_.List()));
  });
  server->Add(
      "POST", "/api/show", false,
      [this](HttpCall& call) {
        const absl::optional<std::string> name = ModelName(&call);
        if (!name) return;
        if (!models_.Has(*name)) {
          return call.Answer(
              HttpError(404, absl::StrCat("model '", *name, "' not found")));
        }
        Ask(AnswerOllamaShow, &call);
      },
      OllamaError);
  ask("GET", "/props", AnswerProps);
  ask("POST", "/tokenize", AnswerTokenize);
  ask("POST", "/detokenize", within(AnswerDetokenize));
  ask("POST", "/apply-template", AnswerApplyTemplate);
  server->SetObserver([this](const std::string& route, int status) {
    counters_.Count(route, status);
  });
}

void Service::Health(HttpCall* call) {
  const std::string why = server_->refusal();
  if (!why.empty()) return call->Answer(HttpError(503, why));
  json models = json::object();
  for (const ModelSet::Info& model : models_.List()) {
    // Every request would be refused; one of several is loaded again.
    if (!model.health.ok() && !models_.by_name()) {
      return call->Answer(HttpError(503, std::string(model.health.message())));
    }
    models[model.source.id] = std::string(Name(model.state));
  }
  call->Answer(json{{"status", "ok"}, {"models", std::move(models)}});
}

void Service::Models(HttpCall* call) {
  json list = json::array();
  for (const ModelSet::Info& model : models_.List()) {
    list.push_back(ModelJson(model));
  }
  call->Answer(json{{"object", "list"}, {"data", std::move(list)}});
}

void Service::Model(HttpCall* call) {
  for (const ModelSet::Info& model : models_.List()) {
    if (model.source.Answers(call->rest)) return call->Answer(ModelJson(model));
  }
  call->Answer(ModelError(models_.Unknown(call->rest)));
}

void Service::Metrics(HttpCall* call) {
  call->response.set_content(
      absl::StrCat(SchedulerMetrics(models_.Stats()), counters_.Text(),
                   Metric("weft_models_ready", "Models that are loaded.",
                          "gauge", models_.ready()),
                   Metric("weft_model_loads_total", "Models loaded.", "counter",
                          models_.loads()),
                   Metric("weft_model_unloads_total",
                          "Models unloaded, since others were asked for.",
                          "counter", models_.unloads()),
                   Metric("weft_http_connections", "Connections that are open.",
                          "gauge", server_->connections()),
                   Metric("process_resident_memory_bytes", "Memory in use.",
                          "gauge", static_cast<double>(ResidentBytes()))),
      "text/plain; version=0.0.4; charset=utf-8");
}

}  // namespace weft
