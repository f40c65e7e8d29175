#include "serve/embeddings.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
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

absl::StatusOr<json> Embed(const ServedModel& model,
                           const ServiceLimits& limits,
                           const EmbeddingsRequest& request) {
  int64_t all_tokens = 0;
  json data = json::array();
  for (const Prompt& input : request.inputs) {
    WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                          EncodePrompt(model, input, /*parse_special=*/false));
    WEFT_RETURN_IF_ERROR(CheckPrompt(model, limits, tokens, "input", 0));
    WEFT_ASSIGN_OR_RETURN(std::vector<float> vector,
                          model.encoder->Embed(tokens));
    Normalize(&vector);
    all_tokens += static_cast<int64_t>(tokens.size());
    data.push_back({{"object", "embedding"},
                    {"index", data.size()},
                    {"embedding", VectorJson(vector, request.base64)}});
  }
  return json{
      {"object", "list"},
      {"data", std::move(data)},
      {"model", model.id},
      {"usage", {{"prompt_tokens", all_tokens}, {"total_tokens", all_tokens}}}};
}

}  // namespace

void AnswerEmbeddings(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call) {
  absl::StatusOr<EmbeddingsRequest> request =
      ParseEmbeddingsRequest(call->body, limits.request);
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  if (model.encoder == nullptr) {
    return call->Answer(ToApiError(absl::UnimplementedError(absl::StrCat(
        model.id, " writes text: serve an encoder for embeddings"))));
  }
  absl::StatusOr<json> answer = Embed(model, limits, *request);
  if (!answer.ok()) return call->Answer(ToApiError(answer.status()));
  call->Answer(*answer);
}

}  // namespace weft
