#include "serve/http_checks.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace weft {
namespace {

// "localhost:8080" or "[::1]:8080" without the port.
absl::string_view HostName(absl::string_view host) {
  if (!host.empty() && host[0] == '[') {
    return host.substr(1, host.find(']') - 1);
  }
  return host.substr(0, host.find(':'));
}

bool IsLoopback(absl::string_view name) {
  return absl::EqualsIgnoreCase(name, "localhost") || name == "::1" ||
         (absl::StartsWith(name, "127.") && absl::c_all_of(name, [](char c) {
            return c == '.' || absl::ascii_isdigit(c);
          }));
}

}  // namespace

bool HasBody(const httplib::Request& request) {
  return request.has_header("Transfer-Encoding") ||
         (request.has_header("Content-Length") &&
          request.get_header_value("Content-Length") != "0");
}

absl::optional<ApiError> CheckOrigin(const httplib::Request& request,
                                     const OriginRules& rules) {
  const std::string host = request.get_header_value("Host");
  if (rules.loopback && !host.empty() && !IsLoopback(HostName(host)) &&
      !absl::c_linear_search(rules.hosts, HostName(host))) {
    return HttpError(403,
                     "this server is for this machine alone: ask for it "
                     "as localhost");
  }
  const std::string origin = request.get_header_value("Origin");
  if (origin.empty()) return absl::nullopt;
  const size_t scheme = origin.find("://");
  const bool own =
      scheme != std::string::npos && origin.substr(scheme + 3) == host;
  if (own || rules.cors_origin == "*" || rules.cors_origin == origin) {
    return absl::nullopt;
  }
  return HttpError(403,
                   "pages of other origins may not use this server: see "
                   "--cors-origin");
}

absl::optional<ApiError> CheckBody(const httplib::Request& request,
                                   int64_t most) {
  const std::string type = request.get_header_value("Content-Type");
  if (!type.empty() && !absl::StartsWithIgnoreCase(type, "application/json")) {
    return HttpError(415, "want a body with Content-Type: application/json");
  }
  const std::string encoding = request.get_header_value("Content-Encoding");
  if (!encoding.empty() && !absl::EqualsIgnoreCase(encoding, "identity")) {
    return HttpError(415, "want a body without Content-Encoding");
  }
  const std::string transfer = request.get_header_value("Transfer-Encoding");
  const size_t lengths = request.get_header_value_count("Content-Length");
  if (lengths > 1 || (lengths > 0 && !transfer.empty()) ||
      (!transfer.empty() && !absl::EqualsIgnoreCase(transfer, "chunked"))) {
    return HttpError(400,
                     "the body's length is not clear: want one "
                     "Content-Length, or chunks");
  }
  if (lengths == 0) return absl::nullopt;
  uint64_t length = 0;
  const std::string text = request.get_header_value("Content-Length");
  if (text.find_first_not_of("0123456789") != std::string::npos ||
      !absl::SimpleAtoi(text, &length)) {
    return HttpError(400, "Content-Length is no number");
  }
  if (length > static_cast<uint64_t>(most)) {
    return HttpError(
        413, absl::StrCat("the body has ", length, " bytes: at most ", most,
                          " (--max-body-bytes)"));
  }
  return absl::nullopt;
}

}  // namespace weft
