// What a request's headers tell before its body is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "httplib.h"
#include "serve/api_error.h"

namespace weft {

// Who may use the server, as far as browsers tell.
struct OriginRules {
  bool loopback = true;  // the server listens at loopback only
  // Names, beside those of loopback, that requests to a server on loopback may
  // call it by: what a proxy passes on.
  std::vector<std::string> hosts;
  std::string cors_origin;  // pages of this origin may; empty: none, "*": any
};

// A page of another origin cannot use a server on loopback: an error for a
// foreign Origin, and for a Host that is no name of loopback, since any name
// can be made to point there.
absl::optional<ApiError> CheckOrigin(const httplib::Request& request,
                                     const OriginRules& rules);

// An error unless the body is JSON, of a length that is clear and at most
// `most`.
absl::optional<ApiError> CheckBody(const httplib::Request& request,
                                   int64_t most);

// Whether bytes follow the headers.
bool HasBody(const httplib::Request& request);

}  // namespace weft
