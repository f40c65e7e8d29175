// One client's connection: requests come in and answers go out, within limits
// of size and time.
//
// Idea: this is the only thing that touches a socket. It reads heads and bodies
// itself, strictly (serve/request_head.h, serve/chunked_body.h), and counts
// what a request has sent and until when it may. The HTTP library (cpp-httplib
// 0.11) is to write answers only: as its stream, this gives it a request line
// of weft's own to read, so that nothing a stranger wrote is parsed by it (it
// matches Range with a recursive expression, decodes %XX in headers, and takes
// sizes and line ends as they come).
//
// Times are the monotonic clock's. Used by the connection's own thread;
// Interrupt, CloseInput and idle() may be called from others.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "httplib.h"
#include "serve/api_error.h"
#include "serve/request_head.h"

namespace weft {

struct ConnectionLimits {
  // From the first byte of the request line to the end of the empty line.
  int64_t header_bytes = 16 << 10;
  int64_t body_bytes = 8 << 20;
  absl::Duration header_time = absl::Seconds(10);  // from the first byte
  absl::Duration body_time = absl::Seconds(30);
  absl::Duration idle_time = absl::Seconds(30);   // between requests
  absl::Duration write_time = absl::Seconds(30);  // without any progress
};

class Connection : public httplib::Stream {
 public:
  // Takes the socket, and closes it at the end.
  Connection(int socket, const ConnectionLimits& limits);
  ~Connection() override;

  // Waits for the first byte of a request, within the idle time. False: there
  // will be none.
  bool WaitForRequest();
  // The request's head, and then its body. After an error nobody knows where
  // the next request begins.
  absl::optional<ApiError> ReadHead(RequestHead* head);
  absl::optional<ApiError> ReadBody(const RequestHead& head, std::string* body);
  // What the library reads as the next request.
  void SetLibraryRequest(absl::string_view head) { library_ = head; }

  // Whether the client has closed its end or is gone. A client that closes only
  // its sending side counts as gone.
  bool PeerGone();

  // Whether bytes have come that nobody took.
  bool HasMore() const;

  // After the last answer, where more was sent than was read: tells the client
  // that all was said and waits a moment, so that it reads the answer before it
  // hears that nobody reads it.
  void Linger();

  // From any thread: no more requests; and nothing at all any more.
  void CloseInput() { ::shutdown(socket_, SHUT_RD); }
  void Interrupt() { ::shutdown(socket_, SHUT_RDWR); }
  bool idle() const { return idle_; }

  bool is_readable() const override { return !library_.empty(); }
  bool is_writable() const override { return !broken_; }
  ssize_t read(char* data, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  // None: the library would refuse numbers that select() cannot wait for, and
  // has nothing to wait for here.
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  using Clock = std::chrono::steady_clock;

  // Until something can be read (or written), or the deadline.
  bool WaitFor(short events, Clock::time_point deadline) const;
  bool Fill(Clock::time_point deadline);
  // The bytes that have come and nobody took, at least one; none: the time is
  // over, or the client has gone.
  absl::string_view Received(Clock::time_point deadline);
  // What that was of the two; `part` is the head or the body.
  ApiError EndedEarly(absl::string_view part, Clock::time_point deadline) const;

  const int socket_;
  const ConnectionLimits limits_;
  std::atomic<bool> idle_{true};
  bool broken_ = false;
  absl::string_view library_;
  char buffer_[4096];
  size_t begin_ = 0, end_ = 0;
};

}  // namespace weft
