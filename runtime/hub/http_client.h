// One HTTP request at a time, by libcurl; what follows from an answer
// (redirects, another try) is the caller's to decide.
//
// Limits: HTTP and HTTPS alone; an answer that stands still for a minute is
// given up. Proxies and the file of certificates are those of the environment
// (https_proxy, SSL_CERT_FILE).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

struct HttpRequest {
  std::string url;
  bool head = false;
  std::vector<std::string> headers;  // "Name: value"
};

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in small letters
  std::string redirect;     // where to, as a whole URL; empty: nowhere
  int64_t retry_after = 0;  // seconds; 0: it does not say
  // Of an answer that is no success: what it begins with.
  std::string error_body;

  // Empty: there is none.
  std::string Header(const std::string& name) const;
};

// A part of a successful answer's body; `head` is complete but for `redirect`.
// An error ends the transfer, and is that of Send.
using BodyReader =
    std::function<absl::Status(const HttpAnswer& head, absl::string_view part)>;

class HttpClient {
 public:
  // Errors: no libcurl.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Create();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // One call at a time; connections are kept between calls. Whatever the
  // server's answer is, it is no error. Errors: `body`'s, and kUnavailable
  // where there was no whole answer.
  absl::StatusOr<HttpAnswer> Send(const HttpRequest& request,
                                  const BodyReader& body = nullptr);

 private:
  HttpClient() = default;

  struct State;
  std::unique_ptr<State> state_;
};

// "https://host:port" of a URL, in small letters and with the port written out;
// empty for what is none. Two that differ are different servers.
std::string OriginOf(absl::string_view url);

}  // namespace weft
