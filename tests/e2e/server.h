// `weft serve` as a child of the test, and clients of it.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

#include "httplib.h"
#include "nlohmann/json.hpp"

namespace weft {

// Starts in the constructor, on a free port, and waits until it is ready. Ends
// the process when it goes.
class Server {
 public:
  // Without "serve" and --port. With `ranks` above 1, by as many processes
  // (RunOptions::ranks).
  explicit Server(std::vector<std::string> arguments, int ranks = 1);
  ~Server();

  int port() const { return port_; }
  httplib::Client Client() const;
  pid_t pid() const { return child_; }

  // Waits for its end: the exit code, -1 if a signal ended it. Once.
  int Wait();
  // What it wrote to standard error so far.
  std::string Log() const;

 private:
  std::string log_path_;
  pid_t child_ = -1;
  int port_ = 0;
};

struct Answer {
  int status = 0;
  std::string text;  // the body
  nlohmann::json json;
};

// Bodies of POST requests are JSON text. A test failure when there is no
// answer.
Answer Post(const Server& server, const std::string& path,
            const std::string& body);
Answer Get(const Server& server, const std::string& path);

// The objects of a stream of server-sent events, each checked to be JSON in
// UTF-8; `*done` tells whether [DONE] was the last.
std::vector<nlohmann::json> Events(const std::string& stream,
                                   bool* done = nullptr);

// A number of /metrics, -1 when it is not there.
double MetricOf(const Server& server, const std::string& name);

}  // namespace weft
