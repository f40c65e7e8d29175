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

#include "absl/time/clock.h"

namespace weft {
namespace {

// Chunked bodies have up to so much around each byte.
constexpr int64_t kChunkOverhead = 8;
constexpr absl::Duration kLingerTime = absl::Seconds(2);

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

bool Connection::WaitFor(short events, absl::Time deadline) const {
  while (true) {
    const int64_t wait = std::max<int64_t>(
        0, std::min<int64_t>(
               absl::ToInt64Milliseconds(deadline - absl::Now()) + 1, 60000));
    pollfd poll_fd = {socket_, events, 0};
    const int found = poll(&poll_fd, 1, static_cast<int>(wait));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
    if (absl::Now() >= deadline) return false;
  }
}

bool Connection::Fill(absl::Time deadline) {
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

bool Connection::WaitForRequest() {
  if (broken_) return false;
  if (begin_ == end_) {
    idle_ = true;
    const bool filled = Fill(absl::Now() + limits_.idle_time);
    idle_ = false;
    if (!filled) return false;
  }
  trouble_ = Trouble::kNone;
  in_body_ = false;
  left_ = limits_.header_bytes;
  deadline_ = absl::Now() + limits_.header_time;
  return true;
}

void Connection::BeginBody() {
  in_body_ = true;
  left_ = limits_.body_bytes * kChunkOverhead + limits_.header_bytes;
  deadline_ = absl::Now() + limits_.body_time;
}

ssize_t Connection::read(char* data, size_t size) {
  if (trouble_ != Trouble::kNone) return -1;
  if (left_ <= 0) {
    trouble_ = in_body_ ? Trouble::kBodyTooLarge : Trouble::kHeaderTooLarge;
    return -1;
  }
  if (begin_ == end_ && !Fill(deadline_)) {
    if (absl::Now() >= deadline_) trouble_ = Trouble::kTooSlow;
    return -1;
  }
  // A byte now and then does not win time either.
  if (absl::Now() >= deadline_) {
    trouble_ = Trouble::kTooSlow;
    return -1;
  }
  const size_t count =
      std::min({size, end_ - begin_, static_cast<size_t>(left_)});
  std::memcpy(data, buffer_ + begin_, count);
  begin_ += count;
  left_ -= static_cast<int64_t>(count);
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* data, size_t size) {
  size_t sent = 0;
  while (sent < size && !broken_) {
    const ssize_t count = send(socket_, data + sent, size - sent, MSG_NOSIGNAL);
    if (count > 0) {
      sent += static_cast<size_t>(count);
    } else if (count < 0 && errno == EAGAIN) {
      broken_ = !WaitFor(POLLOUT, absl::Now() + limits_.write_time);
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

void Connection::Linger() {
  ::shutdown(socket_, SHUT_WR);
  const absl::Time deadline = absl::Now() + kLingerTime;
  while (Fill(deadline) && absl::Now() < deadline) {
  }
}

bool Connection::is_readable() const {
  return begin_ != end_ || WaitFor(POLLIN, deadline_);
}

bool Connection::is_writable() const { return !broken_; }

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
