#include "serve/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "serve/json_fields.h"

namespace weft {
namespace {

constexpr int kBacklog = 512;
// Only told to clients, which may take it for a promise.
constexpr size_t kRequestsPerConnection = 1000000;
constexpr absl::Duration kRoomWait = absl::Milliseconds(200);

}  // namespace

struct HttpServer::Exchange {
  explicit Exchange(Connection* connection) : connection(connection) {}
  Connection* connection;
  const Route* route = nullptr;
  std::string rest;
  absl::optional<ApiError> refusal;
  bool preflight = false;
  bool unread = false;  // the body, or part of it: the connection must end
};

namespace {

// The library passes requests to handlers without the connection that they came
// by; both are of this thread.
template <typename T>
T*& Current() {
  static thread_local T* current = nullptr;
  return current;
}

}  // namespace

void HttpCall::Answer(const nlohmann::ordered_json& json) {
  response.set_content(JsonText(json), "application/json");
}

void HttpCall::Answer(const ApiError& error) {
  response.status = error.status;
  if (error.status == 429 || error.status == 503) {
    response.set_header("Retry-After", "1");
  }
  Answer(ErrorJson(error));
}

HttpServer::HttpServer(const HttpOptions& options, ApiKeys keys)
    : options_(options), keys_(std::move(keys)) {
  svr_sock_ = INVALID_SOCKET;
  keep_alive_timeout_sec_ =
      static_cast<time_t>(absl::ToInt64Seconds(options_.limits.idle_time));
  set_pre_routing_handler([this](const httplib::Request& request,
                                 httplib::Response& response) {
    Exchange& exchange = *Current<Exchange>();
    if (!options_.origin.cors_origin.empty() && request.has_header("Origin")) {
      response.set_header("Access-Control-Allow-Origin",
                          options_.origin.cors_origin);
      response.set_header("Vary", "Origin");
    }
    if (exchange.refusal.has_value()) {
      if (exchange.refusal->status == 401) {
        response.set_header("WWW-Authenticate", "Bearer");
      }
      HttpCall{request, response, *exchange.connection, "", ""}.Answer(
          *exchange.refusal);
      return HandlerResponse::Handled;
    }
    if (exchange.preflight) {
      response.status = 204;
      response.set_header("Access-Control-Allow-Methods", "GET, POST");
      response.set_header("Access-Control-Allow-Headers",
                          "Authorization, Content-Type");
      return HandlerResponse::Handled;
    }
    // A body without a length would last until the client closes.
    if (exchange.route->method == "POST" && HasBody(request)) {
      return HandlerResponse::Unhandled;
    }
    Call(request, response, "");
    return HandlerResponse::Handled;
  });
  set_error_handler(HandlerWithResponse(
      [](const httplib::Request& request, httplib::Response& response) {
        if (!response.body.empty()) return HandlerResponse::Handled;
        Exchange* exchange = Current<Exchange>();
        std::string message = "the request is no HTTP that this server knows";
        if (exchange->connection->trouble() == Connection::Trouble::kTooSlow) {
          response.status = 408;
          message = "the request took too long";
        } else if (exchange->connection->trouble() ==
                   Connection::Trouble::kHeaderTooLarge) {
          response.status = 431;
          message = "the request's headers are too large";
        } else if (response.status == 414) {
          message = "the request's path is too long";
        }
        exchange->unread = true;
        HttpCall{request, response, *exchange->connection, "", ""}.Answer(
            HttpError(response.status, message));
        return HandlerResponse::Handled;
      }));
  set_exception_handler([](const httplib::Request& request,
                           httplib::Response& response, std::exception_ptr) {
    Exchange* exchange = Current<Exchange>();
    exchange->unread = true;
    HttpCall{request, response, *exchange->connection, "", ""}.Answer(
        HttpError(500, "not enough memory for this request"));
  });
}

HttpServer::~HttpServer() {
  if (svr_sock_ != INVALID_SOCKET) close(svr_sock_);
}

void HttpServer::Add(const char* method, std::string path, bool open,
                     Handler handler) {
  if (absl::string_view(method) == "POST") {
    Post(path,
         [this](const httplib::Request& request, httplib::Response& response,
                const httplib::ContentReader& reader) {
           ReadAndCall(request, response, reader);
         });
  }
  const bool prefix = absl::EndsWith(path, "*");
  if (prefix) path.pop_back();
  routes_.push_back(
      {method, std::move(path), prefix, open, std::move(handler)});
}

void HttpServer::SetObserver(Observer observer) {
  set_logger([observer = std::move(observer)](
                 const httplib::Request&, const httplib::Response& response) {
    const Route* route = Current<Exchange>()->route;
    observer(route == nullptr ? "" : route->path, response.status);
  });
}

void HttpServer::SetRefusal(std::string why) {
  absl::MutexLock lock(&mutex_);
  refusal_ = std::move(why);
}

std::string HttpServer::refusal() const {
  absl::MutexLock lock(&mutex_);
  return refusal_;
}

int HttpServer::connections() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(open_.size());
}

absl::Status HttpServer::Listen(const std::string& host, int port) {
  const auto error = [&](const std::string& reason) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen: ", host, ":", port, ": ", reason));
  };
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failed =
      getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) return error(gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(
      found, freeaddrinfo);
  const int listener = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return error(std::strerror(errno));
  // The port of a server that has just ended is free; not one in use.
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_storage bound = {};
  socklen_t size = sizeof(bound);
  if (bind(listener, found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(listener, kBacklog) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    const std::string reason =
        errno == EADDRINUSE
            ? "the port is in use: choose another with --port, or 0 for any"
            : std::strerror(errno);
    close(listener);
    return error(reason);
  }
  if (bound.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(bound);
    port_ = ntohs(v6.sin6_port);
    options_.origin.loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
  } else {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(bound);
    port_ = ntohs(v4.sin_port);
    options_.origin.loopback = (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  svr_sock_ = listener;
  return absl::OkStatus();
}

void HttpServer::Serve() {
  while (!stopping_) {
    const int socket = accept4(svr_sock_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0) {
      Accept(socket);
    } else if (!stopping_ && errno != EINTR && errno != ECONNABORTED) {
      // No more descriptors, or memory: connections that end give some back.
      absl::SleepFor(absl::Milliseconds(10));
    }
  }
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &HttpServer::AllEnded));
}

void HttpServer::Stop(absl::Duration grace) {
  stopping_ = true;
  ::shutdown(svr_sock_, SHUT_RDWR);  // wakes accept
  absl::MutexLock lock(&mutex_);
  for (const auto& entry : open_) {
    if (entry.first->idle()) entry.first->CloseInput();
  }
  mutex_.AwaitWithTimeout(absl::Condition(this, &HttpServer::AllEnded), grace);
  for (const auto& entry : open_) entry.first->Interrupt();
}

bool HttpServer::MakeRoom() {
  absl::MutexLock lock(&mutex_);
  if (HasRoom()) return true;
  for (const auto& entry : open_) {
    if (!entry.first->idle()) continue;
    entry.first->CloseInput();
    return mutex_.AwaitWithTimeout(absl::Condition(this, &HttpServer::HasRoom),
                                   kRoomWait);
  }
  return false;
}

void HttpServer::Accept(int socket) {
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  if (!MakeRoom()) return RefuseConnection(socket);
  auto owned = std::make_unique<Connection>(socket, options_.limits);
  Connection* connection = owned.get();
  {
    absl::MutexLock lock(&mutex_);
    open_.emplace(connection, std::move(owned));
  }
  try {
    std::thread([this, connection] {
      ServeConnection(connection);
      EndConnection(connection);
    }).detach();
  } catch (const std::system_error&) {
    EndConnection(connection);  // the system has no thread for it
  }
}

void HttpServer::EndConnection(Connection* connection) {
  absl::MutexLock lock(&mutex_);
  open_.erase(connection);
}

void HttpServer::RefuseConnection(int socket) {
  const std::string body = JsonText(
      ErrorJson(HttpError(503, "too many connections: try again later")));
  const std::string answer = absl::StrCat(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
      "Retry-After: 1\r\nConnection: close\r\nContent-Length: ",
      body.size(), "\r\n\r\n", body);
  // Its buffer is empty: this does not wait. What the client sent meanwhile is
  // read away, so that the answer is not lost to a reset.
  send(socket, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket, SHUT_WR);
  char unread[4096];
  while (recv(socket, unread, sizeof(unread), MSG_DONTWAIT) > 0) {
  }
  close(socket);
}

void HttpServer::ServeConnection(Connection* connection) {
  bool unread = false;
  while (!unread && !stopping_ && connection->WaitForRequest()) {
    Exchange exchange(connection);
    Current<Exchange>() = &exchange;
    bool closed = false;
    const bool answered = process_request(
        *connection, false, closed,
        [&](httplib::Request& request) { BeginExchange(&request, &exchange); });
    unread = exchange.unread;
    if (!answered || closed) break;
  }
  if (unread) connection->Linger();
}

void HttpServer::BeginExchange(httplib::Request* request, Exchange* exchange) {
  exchange->connection->BeginBody();
  // Answers are made for each request: neither parts of one nor compression.
  request->ranges.clear();
  request->headers.erase("Accept-Encoding");
  exchange->refusal = Check(*request, exchange);
  // Only bodies of POST are read.
  exchange->unread = HasBody(*request) && (exchange->refusal.has_value() ||
                                           request->method != "POST");
  if (exchange->unread || stopping_) {
    request->headers.erase("Connection");
    request->headers.emplace("Connection", "close");
  }
}

absl::optional<ApiError> HttpServer::Check(const httplib::Request& request,
                                           Exchange* exchange) const {
  if (absl::optional<ApiError> error = CheckOrigin(request, options_.origin))
    return error;
  const std::string& method = request.method;
  if (method == "OPTIONS" && !options_.origin.cors_origin.empty()) {
    exchange->preflight = true;
    return absl::nullopt;
  }
  bool path_known = false;
  for (const Route& route : routes_) {
    const bool matches = route.prefix
                             ? absl::StartsWith(request.path, route.path)
                             : request.path == route.path;
    if (!matches) continue;
    path_known = true;
    if (route.method == method || (route.method == "GET" && method == "HEAD")) {
      exchange->route = &route;
      exchange->rest = request.path.substr(route.path.size());
    }
  }
  // Who has no key learns nothing of what there is.
  const bool open = exchange->route != nullptr && exchange->route->open;
  if (!open && !keys_.Accept(request.get_header_value("Authorization"))) {
    return HttpError(401, request.has_header("Authorization")
                              ? "this API key is not known here"
                              : "an API key is wanted: Authorization: Bearer "
                                "KEY");
  }
  if (!path_known) return HttpError(404, "there is nothing at this path");
  if (exchange->route == nullptr) {
    return HttpError(405, absl::StrCat("this path does not take ", method));
  }
  if (!open) {
    const std::string why = refusal();
    if (!why.empty()) return HttpError(503, why);
  }
  return method == "POST" ? CheckBody(request, options_.limits.body_bytes)
                          : absl::nullopt;
}

void HttpServer::Call(const httplib::Request& request,
                      httplib::Response& response, std::string body) {
  Exchange& exchange = *Current<Exchange>();
  HttpCall call{request, response, *exchange.connection, std::move(body),
                exchange.rest};
  exchange.route->handler(call);
}

void HttpServer::ReadAndCall(const httplib::Request& request,
                             httplib::Response& response,
                             const httplib::ContentReader& reader) {
  Exchange& exchange = *Current<Exchange>();
  std::string body;
  bool too_large = false;
  const bool read = reader([&](const char* data, size_t size) {
    too_large =
        body.size() + size > static_cast<size_t>(options_.limits.body_bytes);
    if (!too_large) body.append(data, size);
    return !too_large;
  });
  if (read) return Call(request, response, std::move(body));
  exchange.unread = true;
  response.set_header("Connection", "close");
  HttpCall call{request, response, *exchange.connection, "", ""};
  const Connection::Trouble trouble = exchange.connection->trouble();
  if (too_large || trouble == Connection::Trouble::kBodyTooLarge) {
    call.Answer(HttpError(
        413, absl::StrCat("the body has more than ", options_.limits.body_bytes,
                          " bytes (--max-body-bytes)")));
  } else if (trouble == Connection::Trouble::kTooSlow) {
    call.Answer(HttpError(408, "the body took too long"));
  } else {
    call.Answer(HttpError(400, "the body ended early"));
  }
}

}  // namespace weft
