#include "serve/rerank.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/api/ranking.h"
#include "serve/embeddings.h"
#include "serve/generation.h"
#include "serve/json_fields.h"
#include "serve/prompts.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

struct RerankRequest {
  std::string query;
  std::vector<std::string> documents;
  int64_t top = 0;
  bool texts_form = false;  // text-embeddings-inference's: "texts"
  bool return_documents = false;
};

absl::StatusOr<RerankRequest> ReadRequest(const std::string& body,
                                          const RequestLimits& limits) {
  WEFT_ASSIGN_OR_RETURN(const json parsed, ParseJson(body));
  JsonFields fields(parsed, "");
  if (!fields.status().ok()) return fields.status();
  RerankRequest request;
  if (!fields.Has("query")) fields.Fail("query", "is missing");
  fields.Text("query", &request.query);
  request.texts_form = fields.Has("texts");
  const char* name = request.texts_form ? "texts" : "documents";
  const json* documents = fields.Find(name);
  if (documents == nullptr || !documents->is_array() || documents->empty()) {
    return FieldError(name, "want a list of texts");
  }
  if (documents->size() > static_cast<size_t>(limits.embedding_inputs)) {
    return FieldError(name, absl::StrCat("at most ", limits.embedding_inputs,
                                         ", not ", documents->size()));
  }
  for (const json& document : *documents) {
    // Some clients send {"text": ..}.
    const json& text = document.is_object() && document.contains("text")
                           ? document["text"]
                           : document;
    if (!text.is_string()) {
      return FieldError(name, absl::StrCat(JsonExcerpt(text), " is no text"));
    }
    request.documents.push_back(text.get<std::string>());
  }
  request.top = static_cast<int64_t>(request.documents.size());
  int64_t top = request.top;
  fields.Integer("top_n", 1, int64_t{1} << 31, &top);
  request.top = std::min(request.top, top);
  fields.Bool("return_documents", &request.return_documents);
  fields.Bool("return_text", &request.return_documents);
  if (!fields.status().ok()) return fields.status();
  return request;
}

absl::StatusOr<std::vector<std::vector<float>>> Scores(
    const ServedModel& model, const ServiceLimits& limits,
    const RerankRequest& asked, HttpCall* call, int64_t* tokens) {
  const Plan& plan = model.engine().plan();
  if (plan.model.gives != ModelOutput::kScores) {
    return absl::InvalidArgumentError(absl::StrCat(
        model.id, " is no reranker: serve a model with a head for scores"));
  }
  std::vector<Request> requests;
  for (const std::string& document : asked.documents) {
    Request request;
    request.embed = true;
    request.adapter_scales = model.adapters->Get();
    WEFT_ASSIGN_OR_RETURN(request.prompt_tokens,
                          PairTokens(plan, model.tokenizer(), asked.query,
                                     document, WhileClientIsThere(call)));
    WEFT_RETURN_IF_ERROR(CheckPrompt(model, limits, request.prompt_tokens,
                                     asked.texts_form ? "texts" : "documents",
                                     0));
    requests.push_back(std::move(request));
  }
  return WholeTexts(model, limits, std::move(requests), *call, tokens);
}

}  // namespace

void AnswerRerank(const ServedModel& model, const ServiceLimits& limits,
                  HttpCall* call) {
  const absl::StatusOr<RerankRequest> request =
      ReadRequest(call->body, limits.request);
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  int64_t tokens = 0;
  const absl::StatusOr<std::vector<std::vector<float>>> scores =
      Scores(model, limits, *request, call, &tokens);
  if (!scores.ok()) return call->Answer(GenerationError(scores.status()));
  std::vector<size_t> order(scores->size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return (*scores)[a][0] > (*scores)[b][0];
  });
  order.resize(static_cast<size_t>(request->top));
  json results = json::array();
  for (const size_t index : order) {
    json result = {{"index", index}};
    result[request->texts_form ? "score" : "relevance_score"] =
        (*scores)[index][0];
    if (request->return_documents) {
      const std::string& text = request->documents[index];
      if (request->texts_form) {
        result["text"] = text;
      } else {
        result["document"] = {{"text", text}};
      }
    }
    results.push_back(std::move(result));
  }
  if (request->texts_form) return call->Answer(results);
  call->Answer(
      json{{"object", "list"},
           {"model", model.id},
           {"results", std::move(results)},
           {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}});
}

}  // namespace weft
