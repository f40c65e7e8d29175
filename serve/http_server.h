// Connections, limits and routes; what the routes answer is others' work.
//
// Idea: cpp-httplib reads requests and writes answers; accepting, the number of
// connections and all limits are here (serve/connection.h), since the library's
// own are too wide for strangers: one thread for each connection, at most so
// many; beyond that an idle one gives way, else the new one is told 503. What a
// request may not do is known from its headers, before its body is read.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "httplib.h"
#include "serve/api_error.h"
#include "serve/api_keys.h"
#include "serve/connection.h"
#include "serve/http_checks.h"

namespace weft {

struct HttpOptions {
  ConnectionLimits limits;
  int connections = 128;  // at most kMostConnections
  OriginRules origin;     // `loopback` is found out
};

// cpp-httplib waits with select() in places.
inline constexpr int kMostConnections = 900;

// One request on its way to its answer.
struct HttpCall {
  const httplib::Request& request;
  httplib::Response& response;
  Connection& connection;
  std::string body;
  // What follows the route's path, for a route of all that begins with it.
  std::string rest;

  void Answer(const nlohmann::ordered_json& json);
  void Answer(const ApiError& error);
};

class HttpServer : private httplib::Server {
 public:
  using Handler = std::function<void(HttpCall& call)>;
  // Told of every answer, on the connection's thread: the route ("" when there
  // was none) and the status.
  using Observer = std::function<void(const std::string& route, int status)>;

  HttpServer(const HttpOptions& options, ApiKeys keys);
  ~HttpServer() override;

  // Before Serve. `path` that ends in "*" takes all that begins with the rest
  // of it (GET only). Open routes ask for no key, and are served while others
  // are not (SetRefusal).
  void Add(const char* method, std::string path, bool open, Handler handler);
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
  };
  // A request between its headers and its answer.
  struct Exchange;

  void Accept(int socket);
  void ServeConnection(Connection* connection);
  void EndConnection(Connection* connection);
  void RefuseConnection(int socket);
  // Whether there may be one more connection. Asks an idle one to end if not,
  // and waits a moment for it.
  bool MakeRoom();
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return open_.size() < static_cast<size_t>(options_.connections);
  }
  bool AllEnded() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return open_.empty();
  }

  // Fills `exchange` and makes what it may of the request's headers.
  void BeginExchange(httplib::Request* request, Exchange* exchange);
  absl::optional<ApiError> Check(const httplib::Request& request,
                                 Exchange* exchange) const;
  void Call(const httplib::Request& request, httplib::Response& response,
            std::string body);
  void ReadAndCall(const httplib::Request& request, httplib::Response& response,
                   const httplib::ContentReader& reader);

  HttpOptions options_;
  const ApiKeys keys_;
  std::vector<Route> routes_;
  int port_ = 0;
  std::atomic<bool> stopping_{false};

  mutable absl::Mutex mutex_;
  std::map<Connection*, std::unique_ptr<Connection>> open_
      ABSL_GUARDED_BY(mutex_);
  std::string refusal_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
