// Handing errors on: what a function returns when something that it calls
// fails.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status of `expression` when it is not ok.
#define WEFT_RETURN_IF_ERROR(expression)                              \
  do {                                                                \
    if (absl::Status weft_status = (expression); !weft_status.ok()) { \
      return weft_status;                                             \
    }                                                                 \
  } while (0)

// Declares or assigns `target` from what a StatusOr holds, or returns its
// status:
//   WEFT_ASSIGN_OR_RETURN(Plan plan, LoadPlan(path));
// `target` must not have a comma outside parentheses.
#define WEFT_ASSIGN_OR_RETURN(target, ...)                                 \
  WEFT_ASSIGN_OR_RETURN_AT(WEFT_LINE_NAME(weft_result_, __LINE__), target, \
                           __VA_ARGS__)
#define WEFT_ASSIGN_OR_RETURN_AT(result, target, ...)  \
  auto result = (__VA_ARGS__);                         \
  if (!result.ok()) return std::move(result).status(); \
  target = *std::move(result)
#define WEFT_LINE_NAME(name, line) WEFT_LINE_NAME_JOINED(name, line)
#define WEFT_LINE_NAME_JOINED(name, line) name##line
