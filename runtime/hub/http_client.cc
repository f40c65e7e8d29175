#include "runtime/hub/http_client.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "runtime/hub/curl.h"

namespace weft {
namespace {

constexpr long kConnectSeconds = 30;
constexpr long kStillSeconds = 60;
constexpr size_t kMostErrorBody = 4096;
constexpr size_t kMostHeaders = 256;

// Where systems that are no Debian have their certificates: libcurl of a
// package looks where Debian does.
constexpr const char* kCertificates[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

std::string CertificateFile() {
  const char* const chosen = std::getenv("SSL_CERT_FILE");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  for (const char* file : kCertificates) {
    if (access(file, R_OK) == 0) return file;
  }
  return "";
}

}  // namespace

std::string HttpAnswer::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

// Of one call, for libcurl's callbacks.
struct HttpClient::State {
  const Curl* curl = nullptr;
  CURL* easy = nullptr;
  HttpAnswer answer;
  const BodyReader* body = nullptr;
  absl::Status body_status;

  static size_t OnHeader(char* data, size_t, size_t size, void* self) {
    State* const state = static_cast<State*>(self);
    absl::string_view line(data, size);
    line = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(line, "HTTP/")) {
      // Also after "100 Continue" and what a proxy says.
      state->answer.headers.clear();
      state->answer.status = 0;
      const size_t space = line.find(' ');
      if (space != absl::string_view::npos) {
        int status = 0;
        if (absl::SimpleAtoi(line.substr(space + 1, 3), &status)) {
          state->answer.status = status;
        }
      }
      return size;
    }
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos ||
        state->answer.headers.size() >= kMostHeaders) {
      return size;
    }
    state->answer.headers[absl::AsciiStrToLower(line.substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    return size;
  }

  static size_t OnBody(char* data, size_t, size_t size, void* self) {
    State* const state = static_cast<State*>(self);
    const absl::string_view part(data, size);
    if (state->answer.status / 100 != 2) {
      std::string& text = state->answer.error_body;
      absl::StrAppend(&text, part.substr(0, kMostErrorBody - text.size()));
      // The rest is of no use; nor is a connection that would send it.
      return text.size() < kMostErrorBody ? size : 0;
    }
    if (state->body == nullptr || *state->body == nullptr) return size;
    state->body_status = (*state->body)(state->answer, part);
    return state->body_status.ok() ? size : 0;
  }
};

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create() {
  WEFT_ASSIGN_OR_RETURN(const Curl* curl, LoadCurl());
  std::unique_ptr<HttpClient> client(new HttpClient);
  client->state_ = std::make_unique<State>();
  State& state = *client->state_;
  state.curl = curl;
  state.easy = curl->easy_init();
  if (state.easy == nullptr) {
    return absl::ResourceExhaustedError("cannot download: not enough memory");
  }
  const auto set = [&](CURLoption option, auto value) {
    curl->easy_setopt(state.easy, option, value);
  };
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_USERAGENT, "weft");
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, kStillSeconds);
  set(CURLOPT_BUFFERSIZE, 256L << 10);
  set(CURLOPT_HEADERFUNCTION, &State::OnHeader);
  set(CURLOPT_HEADERDATA, client->state_.get());
  set(CURLOPT_WRITEFUNCTION, &State::OnBody);
  set(CURLOPT_WRITEDATA, client->state_.get());
  if (const std::string file = CertificateFile(); !file.empty()) {
    set(CURLOPT_CAINFO, file.c_str());
  }
  return client;
}

HttpClient::~HttpClient() {
  if (state_ != nullptr && state_->easy != nullptr) {
    state_->curl->easy_cleanup(state_->easy);
  }
}

absl::StatusOr<HttpAnswer> HttpClient::Send(const HttpRequest& request,
                                            const BodyReader& body) {
  State& state = *state_;
  const Curl& curl = *state.curl;
  state.answer = HttpAnswer();
  state.body = &body;
  state.body_status = absl::OkStatus();
  curl_slist* headers = nullptr;
  for (const std::string& header : request.headers) {
    headers = curl.slist_append(headers, header.c_str());
  }
  char reason[CURL_ERROR_SIZE] = "";
  curl.easy_setopt(state.easy, CURLOPT_URL, request.url.c_str());
  // Either sets the other's method, too.
  if (request.head) {
    curl.easy_setopt(state.easy, CURLOPT_NOBODY, 1L);
  } else {
    curl.easy_setopt(state.easy, CURLOPT_HTTPGET, 1L);
  }
  curl.easy_setopt(state.easy, CURLOPT_HTTPHEADER, headers);
  curl.easy_setopt(state.easy, CURLOPT_ERRORBUFFER, reason);
  const CURLcode code = curl.easy_perform(state.easy);
  curl.easy_setopt(state.easy, CURLOPT_ERRORBUFFER, nullptr);
  curl.easy_setopt(state.easy, CURLOPT_HTTPHEADER, nullptr);
  curl.slist_free_all(headers);
  state.body = nullptr;
  if (!state.body_status.ok()) return state.body_status;
  // Where the rest of an error's text was not wanted.
  const bool cut = code == CURLE_WRITE_ERROR &&
                   state.answer.error_body.size() == kMostErrorBody;
  if (code != CURLE_OK && !cut) {
    const std::string text =
        *reason != '\0' ? reason : curl.easy_strerror(code);
    const bool certificates = code == CURLE_SSL_CACERT_BADFILE ||
                              code == CURLE_PEER_FAILED_VERIFICATION;
    const absl::string_view advice =
        certificates ? ": install Debian's package ca-certificates, or name a "
                       "file of certificates in SSL_CERT_FILE"
                     : ": check the network and HF_ENDPOINT";
    const std::string message = absl::StrCat(
        "no answer from ", OriginOf(request.url), ": ", text, advice);
    // Another try would end the same way.
    if (certificates || code == CURLE_URL_MALFORMAT ||
        code == CURLE_UNSUPPORTED_PROTOCOL) {
      return absl::FailedPreconditionError(message);
    }
    return absl::UnavailableError(message);
  }
  char* redirect = nullptr;
  curl_off_t seconds = 0;
  curl.easy_getinfo(state.easy, CURLINFO_REDIRECT_URL, &redirect);
  curl.easy_getinfo(state.easy, CURLINFO_RETRY_AFTER, &seconds);
  if (redirect != nullptr) state.answer.redirect = redirect;
  state.answer.retry_after = seconds;
  return std::move(state.answer);
}

std::string OriginOf(absl::string_view url) {
  const std::string lower = absl::AsciiStrToLower(url);
  absl::string_view rest = lower;
  absl::string_view port;
  if (absl::ConsumePrefix(&rest, "https://")) {
    port = ":443";
  } else if (absl::ConsumePrefix(&rest, "http://")) {
    port = ":80";
  } else {
    return "";
  }
  const absl::string_view scheme =
      absl::string_view(lower).substr(0, lower.size() - rest.size());
  rest = rest.substr(0, rest.find_first_of("/?#\\"));
  // A name and password before the host.
  if (const size_t at = rest.rfind('@'); at != absl::string_view::npos) {
    rest.remove_prefix(at + 1);
  }
  if (rest.empty()) return "";
  const size_t colon = rest.rfind(':');
  const bool has_port = colon != absl::string_view::npos &&
                        rest.find(']', colon) == absl::string_view::npos;
  return absl::StrCat(scheme, rest, has_port ? "" : port);
}

}  // namespace weft
