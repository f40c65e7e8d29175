#include "serve/http_checks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace weft {
namespace {

// "localhost:8080" or "[::1]:8080" without the port; empty when it is neither.
absl::string_view HostName(absl::string_view host) {
  const bool bracket = absl::StartsWith(host, "[");
  const size_t end =
      bracket ? host.find(']') : std::min(host.find(':'), host.size());
  if (end == absl::string_view::npos) return "";
  absl::string_view port = host.substr(end + (bracket ? 1 : 0));
  if (!port.empty() && (port.size() == 1 || port[0] != ':' ||
                        !absl::c_all_of(port.substr(1), absl::ascii_isdigit))) {
    return "";
  }
  return bracket ? host.substr(1, end - 1) : host.substr(0, end);
}

bool IsLoopback(absl::string_view name) {
  return absl::EqualsIgnoreCase(name, "localhost") || name == "::1" ||
         (absl::StartsWith(name, "127.") && absl::c_all_of(name, [](char c) {
            return c == '.' || absl::ascii_isdigit(c);
          }));
}

bool IsAddress(absl::string_view name) {
  in6_addr address;  // of either family
  const std::string text(name);
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool IsOwnName(absl::string_view name, const OriginRules& rules) {
  return IsLoopback(name) || (!rules.loopback && IsAddress(name)) ||
         absl::c_any_of(rules.hosts, [name](const std::string& host) {
           return absl::EqualsIgnoreCase(host, name);
         });
}

}  // namespace

absl::optional<ApiError> CheckOrigin(const RequestHead& request,
                                     const OriginRules& rules) {
  const std::string host = request.Value("Host");
  if (!host.empty() && !IsOwnName(HostName(host), rules)) {
    return HttpError(
        403, rules.loopback ? "this server is for this machine alone: ask for "
                              "it as localhost (--allowed-hosts)"
                            : "this server is not known by this name: see "
                              "--allowed-hosts");
  }
  const std::string origin = request.Value("Origin");
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

absl::optional<ApiError> CheckBody(const RequestHead& request, int64_t most) {
  const std::string type = request.Value("Content-Type");
  // What curl says of -d unless told otherwise, as in Ollama's examples. Pages
  // may say it too, but name their origin then.
  const bool form_of_curl =
      absl::StartsWith(request.path, "/api/") &&
      absl::EqualsIgnoreCase(type, "application/x-www-form-urlencoded");
  if (!type.empty() && !form_of_curl &&
      !absl::StartsWithIgnoreCase(type, "application/json")) {
    return HttpError(415, "want a body with Content-Type: application/json");
  }
  const std::string encoding = request.Value("Content-Encoding");
  if (!encoding.empty() && !absl::EqualsIgnoreCase(encoding, "identity")) {
    return HttpError(415, "want a body without Content-Encoding");
  }
  if (request.content_length > most) {
    return HttpError(
        413, absl::StrCat("the body has ", request.content_length,
                          " bytes: at most ", most, " (--max-body-bytes)"));
  }
  return absl::nullopt;
}

std::string Credentials(const RequestHead& request) {
  if (const std::string* shown = request.Find("Authorization")) return *shown;
  const std::string* key = request.Find("x-api-key");
  return key == nullptr ? "" : absl::StrCat("Bearer ", *key);
}

std::string AllowedHeaders(const RequestHead& preflight) {
  const std::string asked = preflight.Value("Access-Control-Request-Headers");
  const bool names = absl::c_all_of(asked, [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == ',' ||
           c == ' ';
  });
  return asked.empty() || !names ? "authorization, content-type, x-api-key"
                                 : asked;
}

absl::Status CheckHostName(absl::string_view name) {
  if (!name.empty() &&
      (IsAddress(name) || name.find_first_of(":/[]* \t") == name.npos)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("want a name or an address, as in proxy.example, without "
                   "scheme, port or wildcard, not '",
                   name, "'"));
}

absl::Status CheckOriginName(absl::string_view origin) {
  const size_t scheme = origin.find("://");
  const absl::string_view host =
      scheme == origin.npos ? "" : origin.substr(scheme + 3);
  if (origin == "*" || origin == "null" ||
      (scheme > 0 && !host.empty() &&
       host.find_first_of("/?#* \t") == host.npos)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "want an origin as browsers send it, as in https://chat.example or "
      "http://localhost:3000, without a path, or *, not '",
      origin, "'"));
}

std::vector<std::string> MachineNames() {
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return {};
  const std::string full = name;
  const std::string first = full.substr(0, full.find('.'));
  return {full, first, absl::StrCat(first, ".local")};
}

}  // namespace weft
