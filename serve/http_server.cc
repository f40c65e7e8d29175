#include "serve/http_server.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "serve/json_fields.h"

namespace weft {
namespace {

constexpr int kBacklog = 512;
// Sent whole, with its length.
constexpr size_t kSmallAnswer = 1 << 20;
constexpr std::chrono::milliseconds kRoomWait(200);
// The deepest template (text/jinja/limits.h) takes a quarter.
constexpr size_t kStackBytes = 4 << 20;

// Whether the system has nothing left for one more connection.
bool IsExhausted(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS ||
         error == ENOMEM;
}

int SpareDescriptor() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

struct HttpServer::Exchange {
  explicit Exchange(Connection* connection) : connection(connection) {}
  Connection* connection;
  RequestHead head;
  std::string body;
  const Route* route = nullptr;
  std::string rest;
  absl::optional<ApiError> refusal;
  std::shared_ptr<const void> kept;  // HttpCall
  bool preflight = false;
  bool unread = false;  // the request, or part of it: the connection must end

  // Of the routes with this path, also where none takes the method.
  ErrorForm error_form = ErrorJson;
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

uint64_t ClientOf(const HttpCall& call) {
  std::string name = Credentials(call.request);
  if (name.empty()) {
    int port = 0;
    call.connection.get_remote_ip_and_port(name, port);
  }
  return std::hash<std::string>()(name);
}

absl::optional<nlohmann::ordered_json> HttpCall::Json() {
  absl::StatusOr<nlohmann::ordered_json> json = ParseJson(body);
  if (json.ok()) return *std::move(json);
  Answer(ToApiError(json.status()));
  return absl::nullopt;
}

void HttpCall::Answer(const nlohmann::ordered_json& json) {
  response.set_content(JsonText(json), "application/json");
}

void HttpCall::Answer(const ApiError& error) {
  response.status = error.status;
  if (error.status == 401) response.set_header("WWW-Authenticate", "Bearer");
  if (error.status == 429 || error.status == 503) {
    response.set_header("Retry-After", "1");
  }
  Answer(error_form(error));
}

std::string HttpCall::Query(absl::string_view name) const {
  const absl::string_view target = request.target;
  const size_t mark = target.find('?');
  if (mark == absl::string_view::npos) return "";
  for (absl::string_view field : absl::StrSplit(target.substr(mark + 1), '&')) {
    if (absl::ConsumePrefix(&field, name) && absl::ConsumePrefix(&field, "=")) {
      return std::string(field);
    }
  }
  return "";
}

void HttpCall::AnswerInParts(
    const char* type, std::function<bool(httplib::DataSink& sink)> more) {
  const auto provider = [more = std::move(more)](size_t,
                                                 httplib::DataSink& sink) {
    return more(sink);
  };
  if (request.http_1_0) {  // knows no chunks
    response.set_content_provider(type, provider);
  } else {
    response.set_chunked_content_provider(type, provider);
  }
}

void HttpCall::AnswerJson(std::function<void(JsonStream* answer)> write) {
  std::string text;
  JsonStream whole([&text](absl::string_view piece) {
    if (text.size() + piece.size() > kSmallAnswer) return false;
    absl::StrAppend(&text, piece);
    return true;
  });
  write(&whole);
  if (whole.Finish()) return response.set_content(text, "application/json");
  AnswerInParts("application/json",
                [write = std::move(write)](httplib::DataSink& sink) {
                  JsonStream parts([&sink](absl::string_view piece) {
                    return sink.write(piece.data(), piece.size());
                  });
                  write(&parts);
                  if (!parts.Finish()) return false;
                  sink.done();
                  return true;
                });
}

HttpServer::HttpServer(const HttpOptions& options, ApiKeys keys)
    : options_(options), keys_(std::move(keys)), spare_(SpareDescriptor()) {
  svr_sock_ = INVALID_SOCKET;
  set_pre_routing_handler(
      [this](const httplib::Request&, httplib::Response& response) {
        Respond(Current<Exchange>(), &response);
        return HandlerResponse::Handled;
      });
  // What the library tells of the connection is not so.
  set_post_routing_handler([this](const httplib::Request&,
                                  httplib::Response& response) {
    response.headers.erase("Keep-Alive");
    response.headers.erase("Accept-Ranges");
    if (response.has_header("Connection")) return;
    response.set_header(
        "Keep-Alive", absl::StrCat("timeout=", absl::ToInt64Seconds(
                                                   options_.limits.idle_time)));
  });
  set_exception_handler([](const httplib::Request&, httplib::Response& response,
                           std::exception_ptr thrown) {
    const char* what = "internal error: please report this request";
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      what = "not enough memory for this request";
    } catch (...) {
    }
    Exchange* exchange = Current<Exchange>();
    HttpCall{exchange->head,       response,      *exchange->connection, "", "",
             exchange->error_form, exchange->kept}
        .Answer(HttpError(500, what));
  });
}

HttpServer::~HttpServer() {
  if (svr_sock_ != INVALID_SOCKET) close(svr_sock_);
  if (spare_ >= 0) close(spare_);
}

void HttpServer::Add(const char* method, std::string path, bool open,
                     Handler handler, ErrorForm error_form) {
  const bool prefix = absl::EndsWith(path, "*");
  if (prefix) path.pop_back();
  routes_.push_back(
      {method, std::move(path), prefix, open, std::move(handler), error_form});
}

void HttpServer::SetObserver(Observer observer) {
  set_logger([observer = std::move(observer)](
                 const httplib::Request&, const httplib::Response& response) {
    const Route* route = Current<Exchange>()->route;
    observer(route == nullptr ? "" : route->path, response.status);
  });
}

void HttpServer::SetRefusal(std::string why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  refusal_ = std::move(why);
}

std::string HttpServer::refusal() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return refusal_;
}

int HttpServer::connections() const {
  const std::lock_guard<std::mutex> lock(mutex_);
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
  options_.origin.hosts.push_back(host);
  if (!options_.origin.loopback) {
    for (std::string& name : MachineNames()) {
      options_.origin.hosts.push_back(std::move(name));
    }
  }
  svr_sock_ = listener;
  return absl::OkStatus();
}

void HttpServer::Serve() {
  while (!stopping_) {
    // While accept4 waits it has taken a descriptor already.
    pollfd waiting = {svr_sock_, POLLIN, 0};
    poll(&waiting, 1, -1);
    const int socket = accept4(svr_sock_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0) {
      Accept(socket);
    } else if (!stopping_ && IsExhausted(errno)) {
      MakeDescriptor();
    }
  }
  std::unique_lock<std::mutex> lock(mutex_);
  ended_.wait(lock, [this] { return open_.empty(); });
}

void HttpServer::Stop(absl::Duration grace) {
  stopping_ = true;
  ::shutdown(svr_sock_, SHUT_RDWR);  // wakes accept
  std::unique_lock<std::mutex> lock(mutex_);
  for (const auto& entry : open_) {
    if (entry.first->idle()) entry.first->CloseInput();
  }
  ended_.wait_until(lock, Clock::now() + absl::ToChronoNanoseconds(grace),
                    [this] { return open_.empty(); });
  for (const auto& entry : open_) entry.first->Interrupt();
}

bool HttpServer::EndAnIdleOne(std::unique_lock<std::mutex>* lock) {
  const size_t before = open_.size();
  for (const auto& entry : open_) {
    if (!entry.first->idle()) continue;
    entry.first->CloseInput();
    return ended_.wait_until(*lock, Clock::now() + kRoomWait,
                             [&] { return open_.size() < before; });
  }
  return false;
}

bool HttpServer::MakeRoom() {
  std::unique_lock<std::mutex> lock(mutex_);
  return HasRoom() || EndAnIdleOne(&lock);
}

void HttpServer::MakeDescriptor() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (EndAnIdleOne(&lock)) return;
  }
  // All are at work: the client is told, by the one that was kept for this.
  if (spare_ >= 0) close(spare_);
  const int socket = accept4(svr_sock_, nullptr, nullptr, SOCK_CLOEXEC);
  spare_ = SpareDescriptor();
  if (socket < 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  } else if (spare_ >= 0) {
    Accept(socket);  // others have ended meanwhile
  } else {
    RefuseConnection(socket);
    spare_ = SpareDescriptor();
  }
}

void HttpServer::Accept(int socket) {
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  if (!MakeRoom()) return RefuseConnection(socket);
  Connection* connection = nullptr;
  try {
    auto owned = std::make_unique<Connection>(socket, options_.limits);
    const std::lock_guard<std::mutex> lock(mutex_);
    connection = owned.get();
    open_.emplace(connection, std::move(owned));
  } catch (const std::bad_alloc&) {
    // It is closed already if it was made.
    if (connection == nullptr) close(socket);
    return;
  }
  StartThread(connection);
}

void HttpServer::StartThread(Connection* connection) {
  struct Start {
    HttpServer* server;
    Connection* connection;
  };
  const auto run = [](void* argument) -> void* {
    const std::unique_ptr<Start> start(static_cast<Start*>(argument));
    try {
      start->server->ServeConnection(start->connection);
    } catch (const std::exception&) {
      // No memory while an answer is written: it stays cut off.
    }
    start->server->EndConnection(start->connection);
    return nullptr;
  };
  auto* start = new (std::nothrow) Start{this, connection};
  // Of a size of its own: the default depends on the user's limits.
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  if (start == nullptr || pthread_create(&thread, &attributes, run, start)) {
    delete start;
    EndConnection(connection);  // the system has no thread for it
  }
  pthread_attr_destroy(&attributes);
}

void HttpServer::EndConnection(Connection* connection) {
  const std::lock_guard<std::mutex> lock(mutex_);
  open_.erase(connection);
  ended_.notify_all();
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
  bool unread = false, open = true;
  while (open && !stopping_ && connection->WaitForRequest()) {
    Exchange exchange(connection);
    Current<Exchange>() = &exchange;
    try {
      Read(&exchange);
    } catch (const std::bad_alloc&) {
      exchange.unread = true;
      exchange.refusal = HttpError(500, "not enough memory for this request");
    }
    unread = exchange.unread;
    open = exchange.head.keep_alive && !unread && !stopping_;
    const bool head_only = exchange.head.method == "HEAD";
    connection->SetLibraryRequest(head_only ? "HEAD / HTTP/1.1\r\n\r\n"
                                            : "GET / HTTP/1.1\r\n\r\n");
    bool closed = false;
    if (!process_request(*connection, !open, closed, nullptr)) break;
  }
  if (unread || connection->HasMore()) connection->Linger();
}

void HttpServer::Read(Exchange* exchange) const {
  const RequestHead& head = exchange->head;
  exchange->refusal = exchange->connection->ReadHead(&exchange->head);
  exchange->unread = exchange->refusal.has_value();
  if (exchange->unread) return;
  exchange->refusal = Check(exchange);
  // Only bodies of POST are read.
  exchange->unread = head.HasBody() &&
                     (exchange->refusal.has_value() || head.method != "POST");
  if (exchange->unread || !head.HasBody()) return;
  if (head.expects_continue) {
    constexpr absl::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    exchange->connection->write(kContinue.data(), kContinue.size());
  }
  exchange->refusal = exchange->connection->ReadBody(head, &exchange->body);
  exchange->unread = exchange->refusal.has_value();
}

void HttpServer::Respond(Exchange* exchange,
                         httplib::Response* response) const {
  if (!options_.origin.cors_origin.empty() &&
      exchange->head.Find("Origin") != nullptr) {
    response->set_header("Access-Control-Allow-Origin",
                         options_.origin.cors_origin);
    response->set_header("Vary", "Origin");
  }
  HttpCall call{exchange->head,        *response,
                *exchange->connection, std::move(exchange->body),
                exchange->rest,        exchange->error_form,
                exchange->kept};
  if (exchange->refusal.has_value()) return call.Answer(*exchange->refusal);
  if (exchange->preflight) {
    response->status = 204;
    response->set_header("Access-Control-Allow-Methods", "GET, POST, DELETE");
    response->set_header("Access-Control-Allow-Headers",
                         AllowedHeaders(exchange->head));
    response->set_header("Access-Control-Max-Age", "600");
    return;
  }
  absl::optional<FairTurns::Turn> turn;
  if (call.body.size() > kLargeBody)
    turn.emplace(&large_bodies_, ClientOf(call));
  exchange->route->handler(call);
}

absl::optional<ApiError> HttpServer::Check(Exchange* exchange) const {
  const RequestHead& request = exchange->head;
  const std::string& method = request.method;
  // First, since a path says how errors are written.
  bool path_known = false;
  for (const Route& route : routes_) {
    const bool matches = route.prefix
                             ? absl::StartsWith(request.path, route.path)
                             : request.path == route.path;
    if (!matches) continue;
    path_known = true;
    exchange->error_form = route.error_form;
    if (route.method == method || (route.method == "GET" && method == "HEAD")) {
      exchange->route = &route;
      exchange->rest = request.path.substr(route.path.size());
    }
  }
  if (absl::optional<ApiError> error = CheckOrigin(request, options_.origin))
    return error;
  if (method == "OPTIONS" && !options_.origin.cors_origin.empty()) {
    exchange->preflight = true;
    return absl::nullopt;
  }
  // Who has no key learns nothing of what there is.
  const bool open = exchange->route != nullptr && exchange->route->open;
  if (!open && !keys_.Accept(Credentials(request))) {
    return HttpError(401, !Credentials(request).empty()
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

}  // namespace weft
