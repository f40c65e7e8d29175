#include "serve/api_error.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "serve/json_fields.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

constexpr char kPromptTokens[] = "weft/prompt_tokens";
constexpr char kContext[] = "weft/context";

int64_t Number(const absl::Status& status, const char* name) {
  const absl::optional<absl::Cord> text = status.GetPayload(name);
  int64_t number = -1;
  if (text.has_value() && !absl::SimpleAtoi(std::string(*text), &number)) {
    number = -1;
  }
  return number;
}

struct Kind {
  int status;
  const char* type;
  const char* code;
};

Kind KindOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return {400, "invalid_request_error", ""};
    case absl::StatusCode::kOutOfRange:
      return {400, "exceed_context_size_error", "context_length_exceeded"};
    case absl::StatusCode::kUnauthenticated:
      return {401, "invalid_request_error", "invalid_api_key"};
    case absl::StatusCode::kNotFound:
      return {404, "invalid_request_error", "not_found"};
    case absl::StatusCode::kResourceExhausted:
      return {429, "rate_limit_error", "queue_full"};
    case absl::StatusCode::kUnimplemented:
      return {501, "not_supported_error", "not_supported"};
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
      return {503, "service_unavailable_error", "unavailable"};
    default:
      return {500, "server_error", "internal_error"};
  }
}

Kind KindOf(int status) {
  switch (status) {
    case 401:
      return KindOf(absl::StatusCode::kUnauthenticated);
    case 403:
      return {403, "permission_error", "forbidden"};
    case 404:
      return KindOf(absl::StatusCode::kNotFound);
    case 405:
      return {405, "invalid_request_error", "method_not_allowed"};
    case 408:
      return {408, "invalid_request_error", "timeout"};
    case 413:
      return {413, "invalid_request_error", "body_too_large"};
    case 415:
      return {415, "invalid_request_error", "unsupported_media_type"};
    case 417:
      return {417, "invalid_request_error", "expectation_failed"};
    case 429:
      return KindOf(absl::StatusCode::kResourceExhausted);
    case 431:
      return {431, "invalid_request_error", "headers_too_large"};
    case 503:
      return KindOf(absl::StatusCode::kUnavailable);
    default:
      if (status < 500) return {status, "invalid_request_error", ""};
      return KindOf(absl::StatusCode::kInternal);
  }
}

ApiError Make(const Kind& kind, std::string message) {
  ApiError error;
  error.status = kind.status;
  error.type = kind.type;
  error.code = kind.code;
  error.message = std::move(message);
  return error;
}

json OrNull(const std::string& text) {
  return text.empty() ? json(nullptr) : json(text);
}

}  // namespace

ApiError ToApiError(const absl::Status& status) {
  ApiError error = Make(KindOf(status.code()), std::string(status.message()));
  error.param = ErrorParam(status);
  error.prompt_tokens = Number(status, kPromptTokens);
  error.context = Number(status, kContext);
  return error;
}

ApiError HttpError(int status, std::string message) {
  return Make(KindOf(status), std::move(message));
}

absl::Status ContextError(int64_t prompt_tokens, int64_t context,
                          int64_t largest) {
  absl::Status status = absl::OutOfRangeError(absl::StrCat(
      "the prompt has ", prompt_tokens,
      " tokens, which leaves no room in a context of ", context, ": shorten it",
      context < largest ? ", or start the server with a larger --context"
                        : ": the model takes no more"));
  status.SetPayload(kPromptTokens, absl::Cord(absl::StrCat(prompt_tokens)));
  status.SetPayload(kContext, absl::Cord(absl::StrCat(context)));
  return status;
}

json ErrorJson(const ApiError& error) {
  json inner = {{"message", error.message},
                {"type", error.type},
                {"param", OrNull(error.param)},
                {"code", OrNull(error.code)}};
  if (error.context >= 0) {
    inner["n_prompt_tokens"] = error.prompt_tokens;
    inner["n_ctx"] = error.context;
  }
  return {{"error", std::move(inner)}};
}

}  // namespace weft
