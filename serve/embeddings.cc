#include "serve/embeddings.h"

#include <algorithm>
#include <cmath>
#include <iterator>
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

// Tokens of a text, of which those that are its own (`plain`, without what the
// vocabulary puts around them) are cut so that at most `most` are left: a text
// still begins and ends as the model wants it.
std::vector<int32_t> Cut(const std::vector<int32_t>& tokens,
                         const std::vector<int32_t>& plain, size_t most) {
  if (tokens.size() <= most) return tokens;
  const auto own =
      std::search(tokens.begin(), tokens.end(), plain.begin(), plain.end());
  const size_t around = tokens.size() - plain.size();
  if (own == tokens.end() || around >= most) {
    return {tokens.begin(), tokens.begin() + most};
  }
  std::vector<int32_t> cut(tokens.begin(), own + (most - around));
  cut.insert(cut.end(), own + plain.size(), tokens.end());
  return cut;
}

// The tokens of an input, as many as are asked for.
absl::StatusOr<std::vector<int32_t>> InputTokens(const ServedModel& model,
                                                 const ServiceLimits& limits,
                                                 const Prompt& input,
                                                 int64_t truncate,
                                                 const EncodeOptions& encode) {
  WEFT_ASSIGN_OR_RETURN(
      std::vector<int32_t> tokens,
      EncodePrompt(model, input, /*parse_special=*/false, encode));
  int64_t most = model.capacity();
  if (limits.prompt_tokens > 0) most = std::min(most, limits.prompt_tokens);
  if (truncate > 0) most = std::min(most, truncate);
  if (truncate == 0 || static_cast<int64_t>(tokens.size()) <= most) {
    return tokens;
  }
  EncodeOptions bare = encode;
  bare.add_special = false;
  WEFT_ASSIGN_OR_RETURN(
      const std::vector<int32_t> plain,
      EncodePrompt(model, input, /*parse_special=*/false, bare));
  return Cut(tokens, plain, static_cast<size_t>(most));
}

// Texts of one request that wait at the same time: more would fill the queue.
constexpr size_t kWave = 64;

}  // namespace

absl::StatusOr<std::vector<std::vector<float>>> WholeTexts(
    const ServedModel& model, const ServiceLimits& limits,
    std::vector<Request> requests, const HttpCall& call, int64_t* tokens) {
  std::vector<std::vector<float>> vectors(requests.size());
  *tokens = 0;
  for (size_t begin = 0; begin < requests.size(); begin += kWave) {
    const size_t end = std::min(begin + kWave, requests.size());
    std::vector<Request> wave(std::make_move_iterator(requests.begin() + begin),
                              std::make_move_iterator(requests.begin() + end));
    Generation generation(model.scheduler.get(), call, limits.buffered_events);
    WEFT_RETURN_IF_ERROR(generation.Start(std::move(wave)));
    while (!generation.done()) {
      WEFT_ASSIGN_OR_RETURN(std::vector<PromptEvent> events, generation.Next());
      for (PromptEvent& event : events) {
        WEFT_RETURN_IF_ERROR(EventError(event.event));
        vectors[begin + event.prompt] = std::move(event.event.embedding);
      }
    }
    *tokens += generation.usage().prompt_tokens;
  }
  return vectors;
}

absl::StatusOr<std::vector<std::vector<float>>> Embed(
    const ServedModel& model, const ServiceLimits& limits,
    std::vector<Request> requests, int64_t dimensions, const HttpCall& call,
    int64_t* tokens) {
  WEFT_ASSIGN_OR_RETURN(
      std::vector<std::vector<float>> vectors,
      WholeTexts(model, limits, std::move(requests), call, tokens));
  for (std::vector<float>& vector : vectors) {
    if (dimensions > 0) vector.resize(dimensions);
    Normalize(&vector);
  }
  return vectors;
}

absl::StatusOr<std::vector<Request>> EmbeddingRequests(
    const ServedModel& model, const ServiceLimits& limits,
    const EncodeOptions& encode, const EmbeddingsRequest& asked) {
  if (!model.encoder()) {
    return absl::InvalidArgumentError(absl::StrCat(
        model.id, " writes text: serve an encoder for embeddings"));
  }
  const ModelInfo& info = model.engine().plan().model;
  if (info.gives == ModelOutput::kScores) {
    return absl::InvalidArgumentError(
        absl::StrCat(model.id,
                     " ranks or classifies: serve another model for "
                     "embeddings"));
  }
  if (asked.dimensions.value_or(1) > info.output_columns()) {
    return FieldError("dimensions",
                      absl::StrCat("want at most ", info.output_columns(),
                                   ", as the model has"));
  }
  std::vector<Request> requests;
  for (const Prompt& input : asked.inputs) {
    Request request;
    request.embed = true;
    request.adapter_scales = model.adapters->Get();
    WEFT_ASSIGN_OR_RETURN(
        request.prompt_tokens,
        InputTokens(model, limits, input, asked.truncate, encode));
    WEFT_RETURN_IF_ERROR(
        CheckPrompt(model, limits, request.prompt_tokens, "input", 0));
    requests.push_back(std::move(request));
  }
  return requests;
}

void AnswerEmbeddings(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call) {
  absl::StatusOr<EmbeddingsRequest> request =
      ParseEmbeddingsRequest(call->body, limits.request);
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  absl::StatusOr<std::vector<Request>> texts =
      EmbeddingRequests(model, limits, WhileClientIsThere(call), *request);
  if (!texts.ok()) return call->Answer(ToApiError(texts.status()));
  int64_t tokens = 0;
  absl::StatusOr<std::vector<std::vector<float>>> vectors =
      Embed(model, limits, *std::move(texts), request->dimensions.value_or(0),
            *call, &tokens);
  if (!vectors.ok()) return call->Answer(GenerationError(vectors.status()));
  json data = json::array();
  for (const std::vector<float>& vector : *vectors) {
    data.push_back({{"object", "embedding"},
                    {"index", data.size()},
                    {"embedding", VectorJson(vector, request->base64)}});
  }
  call->Answer(
      json{{"object", "list"},
           {"data", std::move(data)},
           {"model", model.id},
           {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}});
}

}  // namespace weft
