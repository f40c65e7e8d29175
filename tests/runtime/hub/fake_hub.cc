#include "tests/runtime/hub/fake_hub.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "runtime/hub/part_file.h"

namespace weft {
namespace {

void SendAll(int connection, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent =
        send(connection, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += static_cast<size_t>(sent);
  }
}

FakeRequest ParseRequest(const std::string& head) {
  FakeRequest request;
  const std::vector<std::string> lines = absl::StrSplit(head, "\r\n");
  const std::vector<std::string> words = absl::StrSplit(lines[0], ' ');
  request.method = words[0];
  request.path = words.size() > 1 ? words[1] : "";
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    if (colon == std::string::npos) continue;
    request.headers[absl::AsciiStrToLower(lines[i].substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(lines[i].substr(colon + 1)));
  }
  return request;
}

}  // namespace

std::string HashOf(const std::string& content) {
  Sha256 hash;
  hash.Add(content);
  return hash.Finish();
}

FakeHub::FakeHub() {
  // No proxy stands between a test and its hub.
  setenv("no_proxy", "*", 1);
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(socket_, 64), 0);
  getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Serve(); });
}

FakeHub::~FakeHub() {
  ending_ = true;
  shutdown(socket_, SHUT_RDWR);
  thread_.join();
  close(socket_);
}

std::string FakeHub::url() const {
  return absl::StrCat("http://127.0.0.1:", port_);
}

void FakeHub::Add(const std::string& repository, const std::string& path,
                  const std::string& content) {
  const std::lock_guard<std::mutex> lock(mutex_);
  files_[repository][path] = content;
}

void FakeHub::SetIntercept(Intercept intercept) {
  const std::lock_guard<std::mutex> lock(mutex_);
  intercept_ = std::move(intercept);
}

void FakeHub::SetStorage(const FakeHub* storage) {
  const std::lock_guard<std::mutex> lock(mutex_);
  storage_ = storage;
}

void FakeHub::SetShortLists(bool short_lists) {
  const std::lock_guard<std::mutex> lock(mutex_);
  short_lists_ = short_lists;
}

std::vector<FakeRequest> FakeHub::requests() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return requests_;
}

void FakeHub::ForgetRequests() {
  const std::lock_guard<std::mutex> lock(mutex_);
  requests_.clear();
}

void FakeHub::Serve() {
  std::vector<std::thread> connections;
  while (!ending_) {
    const int connection = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) break;
    connections.emplace_back([this, connection] { Answer(connection); });
  }
  for (std::thread& thread : connections) thread.join();
}

void FakeHub::Answer(int connection) {
  std::string head;
  char buffer[4096];
  while (!absl::StrContains(head, "\r\n\r\n")) {
    const ssize_t size = recv(connection, buffer, sizeof(buffer), 0);
    if (size <= 0) break;
    head.append(buffer, static_cast<size_t>(size));
  }
  const FakeRequest request = ParseRequest(head);
  const FakeAnswer answer = Respond(request);
  std::string text = absl::StrCat("HTTP/1.1 ", answer.status, " X\r\n");
  for (const std::string& header : answer.headers) {
    absl::StrAppend(&text, header, "\r\n");
  }
  absl::StrAppend(&text, "Content-Length: ", answer.body.size(),
                  "\r\nConnection: close\r\n\r\n");
  if (request.method != "HEAD") {
    absl::StrAppend(&text, answer.cut_after < 0
                               ? answer.body
                               : answer.body.substr(0, answer.cut_after));
  }
  SendAll(connection, text);
  shutdown(connection, SHUT_WR);
  // Until the client has gone: an end with bytes unread would be a reset.
  while (recv(connection, buffer, sizeof(buffer), 0) > 0) {
  }
  close(connection);
}

FakeAnswer FakeHub::Content(const FakeRequest& request,
                            const std::string& content) {
  FakeAnswer answer;
  const std::string etag = absl::StrCat("\"", HashOf(content), "\"");
  answer.headers = {"ETag: " + etag, "Accept-Ranges: bytes"};
  answer.body = content;
  const auto range = request.headers.find("range");
  if (range == request.headers.end()) return answer;
  const auto only_if = request.headers.find("if-range");
  if (only_if != request.headers.end() && only_if->second != etag) {
    return answer;
  }
  absl::string_view text = range->second;
  size_t begin = 0;
  if (!absl::ConsumePrefix(&text, "bytes=") ||
      !absl::ConsumeSuffix(&text, "-") || !absl::SimpleAtoi(text, &begin)) {
    answer.status = 400;
  } else if (begin >= content.size()) {
    answer.status = 416;
    answer.body.clear();
  } else {
    answer.status = 206;
    answer.body = content.substr(begin);
    answer.headers.push_back(absl::StrCat("Content-Range: bytes ", begin, "-",
                                          content.size() - 1, "/",
                                          content.size()));
  }
  return answer;
}

FakeAnswer FakeHub::Respond(const FakeRequest& request) {
  Intercept intercept;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    requests_.push_back(request);
    intercept = intercept_;
  }
  if (intercept) {
    if (std::optional<FakeAnswer> answer = intercept(request)) return *answer;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  FakeAnswer answer;
  for (const auto& [repository, files] : files_) {
    absl::string_view rest = request.path;
    if (rest == absl::StrCat("/api/models/", repository) && short_lists_) {
      nlohmann::json siblings = nlohmann::json::array();
      for (const auto& [path, content] : files) {
        siblings.push_back({{"rfilename", path}});
      }
      answer.body = nlohmann::json{{"siblings", siblings}}.dump();
      return answer;
    }
    if (rest == absl::StrCat("/api/models/", repository,
                             "/tree/main?recursive=true") &&
        !short_lists_) {
      nlohmann::json list = nlohmann::json::array();
      for (const auto& [path, content] : files) {
        list.push_back({{"type", "file"},
                        {"path", path},
                        {"size", content.size()},
                        {"oid", "0123456789012345678901234567890123456789"},
                        {"lfs",
                         {{"oid", HashOf(content)},
                          {"size", content.size()},
                          {"pointerSize", 134}}}});
      }
      answer.body = list.dump();
      return answer;
    }
    if (!absl::ConsumePrefix(&rest,
                             absl::StrCat("/", repository, "/resolve/main/"))) {
      continue;
    }
    const auto file = files.find(std::string(rest));
    if (file == files.end()) break;
    if (storage_ == nullptr) return Content(request, file->second);
    answer.status = 302;
    answer.headers = {
        absl::StrCat("Location: ", storage_->url(), request.path),
        absl::StrCat("X-Linked-Etag: \"", HashOf(file->second), "\""),
        absl::StrCat("X-Linked-Size: ", file->second.size()),
        "ETag: \"of-the-redirect\""};
    return answer;
  }
  answer.status = 404;
  answer.headers = {"X-Error-Message: Entry not found"};
  return answer;
}

}  // namespace weft
