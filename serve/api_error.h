// Errors as OpenAI's clients expect them:
//   {"error": {"message": "...", "type": "...", "param": "...", "code": "..."}}
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace weft {

struct ApiError {
  int status = 500;  // of HTTP
  std::string type, message;
  std::string param, code;  // null in JSON when empty
  // With exceed_context_size_error.
  int64_t prompt_tokens = -1, context = -1;
};

// By the status' code; `param` from FieldError, numbers from ContextError.
ApiError ToApiError(const absl::Status& status);

// An error that HTTP itself has a number for.
ApiError HttpError(int status, std::string message);

// A prompt that leaves no room: kOutOfRange with both numbers. `largest`: the
// context that the model could have.
absl::Status ContextError(int64_t prompt_tokens, int64_t context,
                          int64_t largest);

nlohmann::ordered_json ErrorJson(const ApiError& error);

// How a family of routes writes errors; ErrorJson is OpenAI's.
using ErrorForm = nlohmann::ordered_json (*)(const ApiError& error);

}  // namespace weft
