#include "serve/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "serve/chunked_body.h"

namespace weft {
namespace {

// Chunked bodies have up to so much around each byte.
constexpr int64_t kChunkOverhead = 8;
constexpr std::chrono::seconds kLingerTime(2);

std::chrono::nanoseconds Length(absl::Duration duration) {
  return absl::ToChronoNanoseconds(duration);
}

void NameAddress(const sockaddr_storage& address, std::string* ip, int* port) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    *port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    *port = ntohs(v6.sin6_port);
  }
  *ip = text;
}

}  // namespace

Connection::Connection(int socket, const ConnectionLimits& limits)
    : socket_(socket), limits_(limits) {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
}

Connection::~Connection() { close(socket_); }

bool Connection::WaitFor(short events, Clock::time_point deadline) const {
  using std::chrono::milliseconds;
  while (true) {
    const Clock::duration left = deadline - Clock::now();
    const int64_t wait = std::clamp<int64_t>(
        std::chrono::duration_cast<milliseconds>(left).count() + 1, 0, 60000);
    pollfd poll_fd = {socket_, events, 0};
    const int found = poll(&poll_fd, 1, static_cast<int>(wait));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
    if (Clock::now() >= deadline) return false;
  }
}

bool Connection::Fill(Clock::time_point deadline) {
  while (WaitFor(POLLIN, deadline)) {
    const ssize_t got = recv(socket_, buffer_, sizeof(buffer_), 0);
    if (got > 0) {
      begin_ = 0;
      end_ = got;
      return true;
    }
    if (got == 0 || (errno != EINTR && errno != EAGAIN)) return false;
  }
  return false;
}

absl::string_view Connection::Received(Clock::time_point deadline) {
  // A byte now and then does not win time either.
  if (Clock::now() >= deadline) return "";
  if (begin_ == end_ && !Fill(deadline)) return "";
  return absl::string_view(buffer_ + begin_, end_ - begin_);
}

ApiError Connection::EndedEarly(absl::string_view part,
                                Clock::time_point deadline) const {
  return Clock::now() >= deadline
             ? HttpError(408, absl::StrCat("the ", part, " took too long"))
             : HttpError(400, absl::StrCat("the ", part, " ended early"));
}

bool Connection::WaitForRequest() {
  if (broken_) return false;
  if (begin_ != end_) return true;
  idle_ = true;
  const bool filled = Fill(Clock::now() + Length(limits_.idle_time));
  idle_ = false;
  return filled;
}

absl::optional<ApiError> Connection::ReadHead(RequestHead* head) {
  const Clock::time_point deadline = Clock::now() + Length(limits_.header_time);
  std::string bytes;
  size_t scanned = 0;
  while (true) {
    const absl::string_view received = Received(deadline);
    if (received.empty()) return EndedEarly("request", deadline);
    // One byte more than there may be tells whether there is one.
    const size_t room =
        static_cast<size_t>(limits_.header_bytes) + 1 - bytes.size();
    absl::StrAppend(&bytes, received.substr(0, room));
    const absl::StatusOr<size_t> end = FindHeadEnd(bytes, &scanned);
    if (!end.ok()) return HttpError(400, std::string(end.status().message()));
    const size_t size = *end > 0 ? *end : bytes.size();
    if (size > static_cast<size_t>(limits_.header_bytes)) {
      return HttpError(
          431,
          absl::StrCat("the request's headers have more than ",
                       limits_.header_bytes, " bytes (--max-header-bytes)"));
    }
    const size_t taken = std::min(received.size(), room);
    if (*end == 0) {
      begin_ += taken;
      continue;
    }
    begin_ += taken - (bytes.size() - *end);
    absl::StatusOr<RequestHead> parsed =
        ParseRequestHead(absl::string_view(bytes).substr(0, *end));
    if (!parsed.ok()) {
      const bool expects = absl::IsFailedPrecondition(parsed.status());
      return HttpError(expects ? 417 : 400,
                       std::string(parsed.status().message()));
    }
    *head = *std::move(parsed);
    return absl::nullopt;
  }
}

absl::optional<ApiError> Connection::ReadBody(const RequestHead& head,
                                              std::string* body) {
  const Clock::time_point deadline = Clock::now() + Length(limits_.body_time);
  ChunkedBody chunks(limits_.body_bytes, limits_.body_bytes * kChunkOverhead +
                                             limits_.header_bytes);
  const size_t length = static_cast<size_t>(head.content_length);
  while (head.chunked ? !chunks.done() : body->size() < length) {
    const absl::string_view received = Received(deadline);
    if (received.empty()) return EndedEarly("body", deadline);
    if (!head.chunked) {
      const size_t count = std::min(received.size(), length - body->size());
      body->append(received.data(), count);
      begin_ += count;
      continue;
    }
    const absl::StatusOr<size_t> taken = chunks.Push(received, body);
    if (absl::IsOutOfRange(taken.status())) {
      return HttpError(
          413, absl::StrCat(taken.status().message(), ": at most ",
                            limits_.body_bytes, " bytes (--max-body-bytes)"));
    }
    if (!taken.ok()) {
      return HttpError(400, std::string(taken.status().message()));
    }
    begin_ += *taken;
  }
  return absl::nullopt;
}

ssize_t Connection::read(char* data, size_t size) {
  const size_t count = library_.copy(data, size);
  library_.remove_prefix(count);
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* data, size_t size) {
  size_t sent = 0;
  while (sent < size && !broken_) {
    const ssize_t count = send(socket_, data + sent, size - sent, MSG_NOSIGNAL);
    if (count > 0) {
      sent += static_cast<size_t>(count);
    } else if (count < 0 && errno == EAGAIN) {
      broken_ = !WaitFor(POLLOUT, Clock::now() + Length(limits_.write_time));
    } else if (count < 0 && errno != EINTR) {
      broken_ = true;
    }
  }
  return broken_ ? -1 : static_cast<ssize_t>(size);
}

bool Connection::PeerGone() {
  if (broken_) return true;
  pollfd poll_fd = {socket_, POLLRDHUP, 0};
  return poll(&poll_fd, 1, 0) > 0 &&
         (poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool Connection::HasMore() const {
  char byte;
  return begin_ != end_ ||
         recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

void Connection::Linger() {
  ::shutdown(socket_, SHUT_WR);
  const Clock::time_point deadline = Clock::now() + kLingerTime;
  while (Fill(deadline) && Clock::now() < deadline) {
  }
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &size);
  NameAddress(address, &ip, &port);
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
  NameAddress(address, &ip, &port);
}

}  // namespace weft
