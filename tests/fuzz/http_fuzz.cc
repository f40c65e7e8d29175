// Fuzz target: whatever comes over a connection gets answers that are HTTP
// themselves, and the same ones however the bytes are cut; and heads and
// chunked bodies are the same read byte by byte and at once.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "serve/chunked_body.h"
#include "serve/http_server.h"
#include "serve/request_head.h"

namespace {

using weft::HttpCall;

void Expect(bool condition) {
  if (!condition) std::abort();
}

// Serves until the process ends.
int StartServer() {
  weft::HttpOptions options;
  options.limits.header_bytes = 2000;
  options.limits.body_bytes = 2000;
  auto* server = new weft::HttpServer(options, {});
  server->Add("GET", "/open", true, [](HttpCall& call) {
    call.Answer(nlohmann::ordered_json{{"open", true}});
  });
  server->Add("GET", "/things/*", false, [](HttpCall& call) {
    call.AnswerJson(
        [rest = call.rest](weft::JsonStream* answer) { answer->Text(rest); });
  });
  server->Add("POST", "/echo", false, [](HttpCall& call) {
    call.Answer(nlohmann::ordered_json{{"body", call.body}});
  });
  Expect(server->Listen("127.0.0.1", 0).ok());
  std::thread([server] { server->Serve(); }).detach();
  return server->port();
}

// What comes back for bytes that are sent in pieces of this size.
std::string Ask(int port, absl::string_view bytes, size_t step) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Expect(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) ==
         0);
  for (size_t at = 0; at < bytes.size(); at += step) {
    const absl::string_view piece = bytes.substr(at, step);
    if (send(fd, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) break;
  }
  shutdown(fd, SHUT_WR);
  std::string all;
  char buffer[4096];
  ssize_t got;
  while ((got = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
    all.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  return all;
}

// Takes answers one by one: a status line, fields, and a body as long as told.
void CheckAnswers(absl::string_view answers) {
  while (!answers.empty()) {
    Expect(absl::StartsWith(answers, "HTTP/1.1 "));
    const size_t end = answers.find("\r\n\r\n");
    Expect(end != absl::string_view::npos);
    const absl::string_view head = answers.substr(0, end + 2);
    answers.remove_prefix(end + 4);
    if (absl::StartsWith(head, "HTTP/1.1 100 ")) continue;
    const absl::string_view name = "\r\nContent-Length: ";
    const size_t at = head.find(name);
    Expect(at != absl::string_view::npos);
    size_t length = 0;
    const absl::string_view value = head.substr(at + name.size());
    Expect(absl::SimpleAtoi(value.substr(0, value.find('\r')), &length));
    // An answer to HEAD has none.
    if (!absl::StartsWith(answers, "HTTP/1.1 ")) {
      length = std::min(length, answers.size());
      answers.remove_prefix(length);
    }
    if (absl::StrContains(head, "\r\nConnection: close\r\n")) {
      Expect(answers.empty());
    }
  }
}

void CheckHead(absl::string_view bytes) {
  size_t at_once = 0, scanned = 0;
  const auto whole = weft::FindHeadEnd(bytes, &at_once);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const auto part = weft::FindHeadEnd(bytes.substr(0, size), &scanned);
    if (!part.ok()) return Expect(!whole.ok());
    if (*part == 0) continue;
    Expect(whole.ok() && *whole == *part && *part == size);
    const auto head = weft::ParseRequestHead(bytes.substr(0, size));
    if (!head.ok()) return;
    Expect(!head->chunked || head->content_length == 0);
    Expect(head->content_length >= 0 && !head->method.empty());
    return;
  }
  Expect(whole.ok() && *whole == 0);
}

void CheckChunks(absl::string_view bytes) {
  weft::ChunkedBody whole(1000, 1000), cut(1000, 1000);
  std::string a, b;
  const auto taken = whole.Push(bytes, &a);
  size_t count = 0;
  for (size_t i = 0; i < bytes.size() && !cut.done(); ++i) {
    const auto one = cut.Push(bytes.substr(i, 1), &b);
    if (!one.ok()) {
      Expect(!taken.ok() && taken.status() == one.status());
      return;
    }
    count += *one;
  }
  Expect(taken.ok() && *taken == count && a == b && a.size() <= 1000);
  Expect(whole.done() == cut.done());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int port = StartServer();
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckHead(bytes);
  CheckChunks(bytes);
  const size_t body = bytes.find("\r\n\r\n");
  if (body != absl::string_view::npos) CheckChunks(bytes.substr(body + 4));
  const std::string answers = Ask(port, bytes, bytes.size() + 1);
  CheckAnswers(answers);
  Expect(Ask(port, bytes, 50) == answers);
  return 0;
}
