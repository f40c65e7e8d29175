// Connections, limits and routes; what the routes answer is others' work.
//
// Idea: cpp-httplib writes answers; accepting, reading requests and all limits
// are here and in serve/connection.h, since the library's own are too wide for
// strangers: one thread for each connection, at most so many; beyond that, and
// where file descriptors end, an idle one gives way, else the new one is told
// 503. What a request may not do is known from its headers, before its body is
// read.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/fair_turns.h"
#include "httplib.h"
#include "serve/api_error.h"
#include "serve/api_keys.h"
#include "serve/connection.h"
#include "serve/http_checks.h"
#include "serve/json_stream.h"

namespace weft {

struct HttpOptions {
  ConnectionLimits limits;
  int connections = 128;  // at most kMostConnections
  OriginRules origin;     // `loopback` is found out
};

inline constexpr int kMostConnections = 900;

// One request on its way to its answer.
struct HttpCall {
  const RequestHead& request;
  httplib::Response& response;
  Connection& connection;
  std::string body;
  // What follows the route's path, for a route of all that begins with it.
  std::string rest;
  ErrorForm error_form = ErrorJson;
  // What must be there until the whole answer is sent.
  std::shared_ptr<const void>& kept;

  // The value of a field of the query, as it was sent; empty: there is none.
  std::string Query(absl::string_view name) const;

  // The body as JSON; of one that is none the error is answered.
  absl::optional<nlohmann::ordered_json> Json();

  void Answer(const nlohmann::ordered_json& json);
  void Answer(const ApiError& error);
  // An answer of unknown length. `more` writes some of it and returns true, or
  // calls done(); false closes the connection.
  void AnswerInParts(const char* type,
                     std::function<bool(httplib::DataSink& sink)> more);
  // JSON that `write` writes: sent while it is written when it is large, for
  // which it is called twice.
  void AnswerJson(std::function<void(JsonStream* answer)> write);
};

// A client's number: of its key, or else of its address.
uint64_t ClientOf(const HttpCall& call);

// Requests with bodies beyond this take turns, so many at a time: as JSON,
// text and tokens they are up to 25 times as large. Clients take turns, too.
inline constexpr size_t kLargeBody = 256 << 10;
inline constexpr int kLargeBodiesAtOnce = 4;

class HttpServer : private httplib::Server {
 public:
  using Handler = std::function<void(HttpCall& call)>;
  // Told of every answer, on the connection's thread: the route ("" when there
  // was none) and the status.
  using Observer = std::function<void(const std::string& route, int status)>;

  HttpServer(const HttpOptions& options, ApiKeys keys);
  ~HttpServer() override;

  // Before Serve. `path` that ends in "*" takes all that begins with the rest
  // of it. Open routes ask for no key, and are served while others are not
  // (SetRefusal).
  void Add(const char* method, std::string path, bool open, Handler handler,
           ErrorForm error_form = ErrorJson);
  void SetObserver(Observer observer);

  // Binds and listens. Port 0: any that is free. Errors: the address, in one
  // line, with the system's reason.
  absl::Status Listen(const std::string& host, int port);
  int port() const { return port_; }

  // Serves until Stop; from one thread.
  void Serve();
  // Thread-safe. No more connections; those there are get `grace` to end.
  void Stop(absl::Duration grace);

  // Thread-safe. What routes that are not open answer from now on: loading,
  // draining. Empty: they work.
  void SetRefusal(std::string why);
  std::string refusal() const;

  int connections() const;
  // Whether only this machine can reach it.
  bool loopback() const { return options_.origin.loopback; }

 private:
  struct Route {
    std::string method, path;
    bool prefix, open;
    Handler handler;
    ErrorForm error_form;
  };
  // A request between its headers and its answer.
  struct Exchange;
  using Clock = std::chrono::steady_clock;

  void Accept(int socket);
  void StartThread(Connection* connection);
  void ServeConnection(Connection* connection);
  void EndConnection(Connection* connection);
  void RefuseConnection(int socket);
  // Whether there may be one more connection. Asks an idle one to end if not,
  // and waits a moment for it.
  bool MakeRoom();
  // There are no more descriptors.
  void MakeDescriptor();
  // Asks an idle connection to end and waits a moment until any has.
  bool EndAnIdleOne(std::unique_lock<std::mutex>* lock);
  bool HasRoom() const {
    return open_.size() < static_cast<size_t>(options_.connections);
  }

  // Reads and checks the next request.
  void Read(Exchange* exchange) const;
  absl::optional<ApiError> Check(Exchange* exchange) const;
  void Respond(Exchange* exchange, httplib::Response* response) const;

  HttpOptions options_;
  const ApiKeys keys_;
  std::vector<Route> routes_;
  int port_ = 0;
  int spare_ = -1;  // a descriptor to be given up
  std::atomic<bool> stopping_{false};
  mutable FairTurns large_bodies_{kLargeBodiesAtOnce};

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  // Both under mutex_.
  std::map<Connection*, std::unique_ptr<Connection>> open_;
  std::string refusal_;
};

}  // namespace weft
