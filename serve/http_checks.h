// What a request's headers tell before its body is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "serve/api_error.h"
#include "serve/request_head.h"

namespace weft {

// Who may use the server, as far as browsers tell.
struct OriginRules {
  bool loopback = true;  // the server listens at loopback only
  // Names, beside those of loopback, that requests may call the server by.
  std::vector<std::string> hosts;
  std::string cors_origin;  // pages of this origin may; empty: none, "*": any
};

// A page of another origin cannot use the server: an error for a foreign
// Origin, and for a Host that is no name of this machine, since any name can be
// made to point here. Addresses cannot; where the server listens at others than
// loopback, all are taken, since a machine may not know by which it is reached.
absl::optional<ApiError> CheckOrigin(const RequestHead& request,
                                     const OriginRules& rules);

// An error unless the body is JSON, of at most `most` bytes.
absl::optional<ApiError> CheckBody(const RequestHead& request, int64_t most);

// The key that a request shows, as "Bearer KEY": its Authorization, or else
// what x-api-key has.
std::string Credentials(const RequestHead& request);

// The headers that a page of an allowed origin may send: those that it asks
// for.
std::string AllowedHeaders(const RequestHead& preflight);

// An error for what no request's Host can be, port aside.
absl::Status CheckHostName(absl::string_view name);

// An error for what no browser sends as Origin: it is a scheme, a host and
// perhaps a port, or "null". "*" is any.
absl::Status CheckOriginName(absl::string_view origin);

// The names that this machine gives itself.
std::vector<std::string> MachineNames();

}  // namespace weft
