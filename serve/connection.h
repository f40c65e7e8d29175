// One client's connection as the HTTP library sees it: bytes in and out, within
// limits of size and time.
//
// Idea: the library (cpp-httplib 0.11) reads lines and bodies of any length, as
// slowly as they come. So this stream counts what a request has sent and knows
// until when it may, and ends the reading beyond; the library then sees an end
// of file, and trouble() tells why.
//
// Used by the connection's own thread; Interrupt, CloseInput and idle() may be
// called from others.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "httplib.h"

namespace weft {

struct ConnectionLimits {
  int64_t header_bytes = 16 << 10;  // request line included
  int64_t body_bytes = 8 << 20;
  absl::Duration header_time = absl::Seconds(10);  // from the first byte
  absl::Duration body_time = absl::Seconds(30);
  absl::Duration idle_time = absl::Seconds(30);   // between requests
  absl::Duration write_time = absl::Seconds(30);  // without any progress
};

class Connection : public httplib::Stream {
 public:
  enum class Trouble { kNone, kHeaderTooLarge, kBodyTooLarge, kTooSlow };

  // Takes the socket, and closes it at the end.
  Connection(int socket, const ConnectionLimits& limits);
  ~Connection() override;

  // Waits for the first byte of a request, within the idle time. False: there
  // will be none.
  bool WaitForRequest();
  // The headers are read; the body's limits hold from here on.
  void BeginBody();
  // What stopped the reading of this request.
  Trouble trouble() const { return trouble_; }

  // Whether the client has closed its end or is gone. A client that closes only
  // its sending side counts as gone.
  bool PeerGone();

  // After an answer to a request that was not read to its end: tells the client
  // that all was said and waits a moment, so that it reads the answer before it
  // hears that nobody reads it.
  void Linger();

  // From any thread: no more requests; and nothing at all any more.
  void CloseInput() { ::shutdown(socket_, SHUT_RD); }
  void Interrupt() { ::shutdown(socket_, SHUT_RDWR); }
  bool idle() const { return idle_; }

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* data, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  // Until something can be read (or written), or the deadline.
  bool WaitFor(short events, absl::Time deadline) const;
  bool Fill(absl::Time deadline);

  const int socket_;
  const ConnectionLimits limits_;
  std::atomic<bool> idle_{true};
  Trouble trouble_ = Trouble::kNone;
  bool in_body_ = false;
  bool broken_ = false;
  int64_t left_ = 0;  // bytes that the request may still send
  absl::Time deadline_ = absl::InfiniteFuture();
  char buffer_[4096];
  size_t begin_ = 0, end_ = 0;
};

}  // namespace weft
