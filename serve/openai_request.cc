// Completions, embeddings and tokens; serve/chat_request.cc has the chat.
#include "serve/openai_request.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "serve/generation_fields.h"
#include "serve/json_fields.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

constexpr int64_t kMostIds = std::numeric_limits<int32_t>::max();

// A string, strings, ids, or lists of ids.
void ReadPrompts(JsonFields* fields, const char* name, int64_t most,
                 std::vector<Prompt>* prompts) {
  const json* value = fields->Find(name);
  const auto add_text = [&](const json& text) {
    prompts->emplace_back();
    prompts->back().text = text.get<std::string>();
  };
  const auto add_ids = [&](const json& ids) {
    prompts->emplace_back();
    prompts->back().is_tokens = true;
    fields->Keep(
        ReadTokenIds(ids, fields->Path(name), &prompts->back().tokens));
  };
  if (value == nullptr) return fields->Fail(name, "is missing");
  if (value->is_string()) return add_text(*value);
  if (!value->is_array()) {
    return fields->Fail(name,
                        "want a string, a list of strings, a list of token "
                        "ids, or a list of such lists");
  }
  if (value->empty()) return fields->Fail(name, "the list is empty");
  if (value->front().is_number()) return add_ids(*value);
  if (value->size() > static_cast<size_t>(most)) {
    return fields->Fail(
        name, absl::StrCat("at most ", most, ", not ", value->size()));
  }
  for (const json& element : *value) {
    if (element.is_string()) {
      add_text(element);
    } else if (element.is_array()) {
      add_ids(element);
    } else {
      return fields->Fail(name, absl::StrCat(JsonExcerpt(element),
                                             " is neither text nor token ids"));
    }
  }
}

}  // namespace

absl::Status ReadTokenIds(const json& list, const std::string& path,
                          std::vector<int32_t>* ids) {
  if (!list.is_array()) return FieldError(path, "want a list of token ids");
  ids->reserve(list.size());
  for (const json& id : list) {
    if (!id.is_number_integer() || id < 0 || id > kMostIds) {
      return FieldError(path, absl::StrCat(JsonExcerpt(id), " is no token id"));
    }
    ids->push_back(id.get<int32_t>());
  }
  return absl::OkStatus();
}

absl::StatusOr<CompletionRequest> ParseCompletionRequest(
    absl::string_view body, const RequestLimits& limits) {
  WEFT_ASSIGN_OR_RETURN(const json parsed, ParseJson(body));
  return ReadCompletionRequest(parsed, limits);
}

absl::StatusOr<CompletionRequest> ReadCompletionRequest(
    const json& body, const RequestLimits& limits) {
  JsonFields fields(body, "");
  if (!fields.status().ok()) return fields.status();
  CompletionRequest request;
  request.parse_special = limits.parse_special;
  request.generation.max_tokens = 16;
  ReadPrompts(&fields, "prompt", limits.prompts, &request.prompts);
  ReadGenerationFields(&fields, limits, &request.generation);
  absl::optional<int64_t> logprobs;
  fields.Integer("logprobs", 0, limits.top_logprobs, &logprobs);
  request.generation.top_logprobs = logprobs;
  fields.Bool("echo", &request.echo);
  fields.Bool("parse_special", &request.parse_special);
  std::string suffix;
  fields.Text("suffix", &suffix);
  if (!suffix.empty()) request.suffix = std::move(suffix);
  fields.Integer("prompt_logprobs", 0, limits.top_logprobs,
                 &request.generation.prompt_logprobs);
  absl::optional<int64_t> best_of;
  fields.Integer("best_of", 1, limits.choices, &best_of);
  if (best_of.has_value() && *best_of != request.generation.choices) {
    fields.Fail("best_of", "only the same as n is supported");
  }
  if (request.echo && logprobs.has_value()) {
    request.generation.prompt_logprobs =
        std::max(*logprobs, request.generation.prompt_logprobs.value_or(0));
  }
  if (request.echo && request.suffix.has_value()) {
    fields.Fail("echo", "not together with suffix");
  }
  if (request.generation.prompt_logprobs.has_value() &&
      request.generation.choices > 1) {
    fields.Fail("n",
                "log-probabilities of the prompt come with one text: "
                "want 1");
  }
  const int64_t choices =
      request.generation.choices * static_cast<int64_t>(request.prompts.size());
  if (choices > std::max(limits.choices, limits.prompts)) {
    fields.Fail("n", absl::StrCat("n times the number of prompts is ", choices,
                                  ": at most ",
                                  std::max(limits.choices, limits.prompts)));
  }
  if (!fields.status().ok()) return fields.status();
  return request;
}

absl::StatusOr<EmbeddingsRequest> ParseEmbeddingsRequest(
    absl::string_view body, const RequestLimits& limits) {
  WEFT_ASSIGN_OR_RETURN(const json parsed, ParseJson(body));
  return ReadEmbeddingsRequest(parsed, limits);
}

absl::StatusOr<EmbeddingsRequest> ReadEmbeddingsRequest(
    const json& body, const RequestLimits& limits) {
  JsonFields fields(body, "");
  if (!fields.status().ok()) return fields.status();
  EmbeddingsRequest request;
  ReadPrompts(&fields, "input", limits.embedding_inputs, &request.inputs);
  std::string format = "float";
  fields.Text("encoding_format", &format);
  if (format != "float" && format != "base64") {
    fields.Fail("encoding_format", "want float or base64");
  }
  request.base64 = format == "base64";
  fields.Integer("dimensions", 1, kMostIds, &request.dimensions);
  // Jina's and text-embeddings-inference's, and vLLM's.
  bool truncate = false;
  fields.Bool("truncate", &truncate);
  if (truncate) request.truncate = -1;
  fields.Integer("truncate_prompt_tokens", -1, kMostIds, &request.truncate);
  if (!fields.status().ok()) return fields.status();
  return request;
}

absl::StatusOr<TokenizeRequest> ParseTokenizeRequest(absl::string_view body) {
  WEFT_ASSIGN_OR_RETURN(json parsed, ParseJson(body));
  JsonFields fields(parsed, "");
  TokenizeRequest request;
  if (fields.status().ok() && !fields.Has("content")) {
    fields.Fail("content", "is missing");
  }
  fields.Text("content", &request.content);
  fields.Bool("add_special", &request.add_special);
  fields.Bool("parse_special", &request.parse_special);
  fields.Bool("with_pieces", &request.with_pieces);
  if (!fields.status().ok()) return fields.status();
  return request;
}

absl::StatusOr<DetokenizeRequest> ParseDetokenizeRequest(
    absl::string_view body) {
  WEFT_ASSIGN_OR_RETURN(json parsed, ParseJson(body));
  JsonFields fields(parsed, "");
  if (!fields.status().ok()) return fields.status();
  DetokenizeRequest request;
  const json* tokens = fields.Find("tokens");
  if (tokens == nullptr) return FieldError("tokens", "is missing");
  WEFT_RETURN_IF_ERROR(ReadTokenIds(*tokens, "tokens", &request.tokens));
  return request;
}

}  // namespace weft
