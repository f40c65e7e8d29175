#include "serve/embeddings.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "serve/generation.h"
#include "serve/json_fields.h"
#include "serve/prompts.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

void Normalize(std::vector<float>* vector) {
  double squares = 0;
  for (const float x : *vector) squares += static_cast<double>(x) * x;
  if (squares == 0) return;
  for (float& x : *vector) x = static_cast<float>(x / std::sqrt(squares));
}

// Numbers, or the bytes of little-endian floats.
json VectorJson(const std::vector<float>& vector, bool base64) {
  if (!base64) return vector;
  return absl::Base64Escape(
      absl::string_view(reinterpret_cast<const char*>(vector.data()),
                        vector.size() * sizeof(float)));
}

absl::StatusOr<std::vector<Request>> MakeRequests(
    const ServedModel& model, const ServiceLimits& limits,
    const EncodeOptions& encode, const EmbeddingsRequest& asked) {
  std::vector<Request> requests;
  for (const Prompt& input : asked.inputs) {
    Request request;
    request.embed = true;
    WEFT_ASSIGN_OR_RETURN(
        request.prompt_tokens,
        EncodePrompt(model, input, /*parse_special=*/false, encode));
    WEFT_RETURN_IF_ERROR(
        CheckPrompt(model, limits, request.prompt_tokens, "input", 0));
    requests.push_back(std::move(request));
  }
  return requests;
}

// The vectors of all texts, in their order.
absl::StatusOr<std::vector<std::vector<float>>> Embed(
    Generation* generation, std::vector<Request> requests) {
  std::vector<std::vector<float>> vectors(requests.size());
  WEFT_RETURN_IF_ERROR(generation->Start(std::move(requests)));
  while (!generation->done()) {
    WEFT_ASSIGN_OR_RETURN(std::vector<PromptEvent> events, generation->Next());
    for (PromptEvent& event : events) {
      WEFT_RETURN_IF_ERROR(EventError(event.event));
      vectors[event.prompt] = std::move(event.event.embedding);
    }
  }
  return vectors;
}

}  // namespace

void AnswerEmbeddings(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call) {
  absl::StatusOr<EmbeddingsRequest> request =
      ParseEmbeddingsRequest(call->body, limits.request);
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  if (!model.encoder()) {
    return call->Answer(ToApiError(absl::UnimplementedError(absl::StrCat(
        model.id, " writes text: serve an encoder for embeddings"))));
  }
  const ModelInfo& info = model.engine().plan().model;
  if (info.gives == ModelOutput::kScores) {
    return call->Answer(ToApiError(absl::UnimplementedError(absl::StrCat(
        model.id, " ranks or classifies: serve another model for embeddings"))));
  }
  if (request->dimensions > info.output_columns()) {
    return call->Answer(ToApiError(
        FieldError("dimensions", absl::StrCat("the model's vectors have ",
                                              info.output_columns()))));
  }
  absl::StatusOr<std::vector<Request>> texts =
      MakeRequests(model, limits, WhileClientIsThere(call), *request);
  if (!texts.ok()) return call->Answer(ToApiError(texts.status()));
  Generation generation(model.scheduler.get(), *call, limits.buffered_events);
  absl::StatusOr<std::vector<std::vector<float>>> vectors =
      Embed(&generation, *std::move(texts));
  if (!vectors.ok()) return call->Answer(GenerationError(vectors.status()));
  json data = json::array();
  for (std::vector<float>& vector : *vectors) {
    // What is left is made as long as the whole would be.
    if (request->dimensions > 0) vector.resize(request->dimensions);
    Normalize(&vector);
    data.push_back({{"object", "embedding"},
                    {"index", data.size()},
                    {"embedding", VectorJson(vector, request->base64)}});
  }
  const int64_t tokens = generation.usage().prompt_tokens;
  call->Answer(
      json{{"object", "list"},
           {"data", std::move(data)},
           {"model", model.id},
           {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}});
}

}  // namespace weft
