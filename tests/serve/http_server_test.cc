#include "serve/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "serve/http_checks.h"

namespace weft {
namespace {

// How far the wall clock of this process is off.
std::atomic<int> clock_offset_seconds{0};

}  // namespace
}  // namespace weft

// In place of the C library's.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long failed = syscall(SYS_clock_gettime, clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec += weft::clock_offset_seconds;
  return static_cast<int>(failed);
}

namespace weft {
namespace {

using json = nlohmann::ordered_json;

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.limits.header_bytes = 4096;
    options_.limits.body_bytes = 1000;
  }

  void TearDown() override {
    if (server_ == nullptr) return;
    server_->Stop(absl::Seconds(5));
    thread_.join();
  }

  void Start(ApiKeys keys = {}) {
    server_ = std::make_unique<HttpServer>(options_, std::move(keys));
    server_->Add("GET", "/open", true, [](HttpCall& call) {
      call.Answer(json{{"open", true}});
    });
    server_->Add("POST", "/api/chat", false, [](HttpCall& call) {
      call.Answer(json{{"chat", true}});
    });
    server_->Add("POST", "/echo", false, [](HttpCall& call) {
      call.Answer(json{{"body", call.body}});
    });
    server_->Add("GET", "/things/*", false, [](HttpCall& call) {
      call.Answer(json{{"rest", call.rest}});
    });
    server_->Add("GET", "/many/*", false, [](HttpCall& call) {
      call.AnswerJson([count = std::stoi(call.rest)](JsonStream* answer) {
        answer->Open('[');
        for (int i = 0; i < count; ++i) {
          answer->Open('{');
          answer->Key("i");
          answer->Value(i);
          answer->Key("text");
          answer->Text("a \"quote\"");
          answer->Close();
        }
        answer->Close();
      });
    });
    server_->Add("POST", "/wait", false, [this](HttpCall& call) {
      entered_.Notify();
      while (!call.connection.PeerGone()) absl::SleepFor(absl::Milliseconds(1));
      gone_.Notify();
    });
    ASSERT_TRUE(server_->Listen(host_, 0).ok());
    thread_ = std::thread([this] { server_->Serve(); });
  }

  httplib::Client Client() {
    return httplib::Client("127.0.0.1", server_->port());
  }

  int Connect() {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    ConnectTo(fd);
    return fd;
  }

  void ConnectTo(int fd) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(
        connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }

  static std::string ReadAll(int fd) {
    std::string all;
    char buffer[4096];
    ssize_t got;
    while ((got = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
      all.append(buffer, got);
    }
    return all;
  }

  // What comes back for these bytes until the server closes.
  std::string Raw(const std::string& bytes) {
    const int fd = Connect();
    EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    const std::string all = ReadAll(fd);
    close(fd);
    return all;
  }

  const char* host_ = "127.0.0.1";
  HttpOptions options_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  absl::Notification entered_, gone_;
};

void ExpectError(const httplib::Result& result, int status) {
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, status);
  const json body = json::parse(result->body, nullptr, false);
  ASSERT_TRUE(body.is_object()) << result->body;
  EXPECT_TRUE(body["error"]["message"].is_string()) << result->body;
  EXPECT_TRUE(body["error"]["type"].is_string()) << result->body;
  EXPECT_TRUE(body["error"].contains("param")) << result->body;
  EXPECT_TRUE(body["error"].contains("code")) << result->body;
}

TEST_F(HttpServerTest, RoutesAndErrors) {
  Start();
  httplib::Client client = Client();
  EXPECT_EQ(client.Get("/open")->body, R"({"open":true})");
  EXPECT_EQ(client.Get("/things/a/b%20c")->body, R"({"rest":"a/b c"})");
  EXPECT_EQ(client.Post("/echo", "{}", "application/json")->body,
            R"({"body":"{}"})");
  EXPECT_EQ(client.Post("/echo")->body, R"({"body":""})");
  ExpectError(client.Get("/nothing"), 404);
  ExpectError(client.Get("/echo"), 405);
  ExpectError(client.Post("/open", "{}", "application/json"), 405);
  ExpectError(client.Delete("/open"), 405);
  ExpectError(client.Options("/open"), 405);
  ExpectError(client.Post("/echo", "a=b", "application/x-www-form-urlencoded"),
              415);
  // As curl has it when it is told nothing.
  EXPECT_EQ(client.Post("/api/chat", "{}", "application/x-www-form-urlencoded")
                ->status,
            200);
  ExpectError(client.Post("/echo", std::string(1001, 'x'), "application/json"),
              413);
  EXPECT_EQ(
      client.Post("/echo", std::string(1000, 'x'), "application/json")->status,
      200);
  ExpectError(client.Post("/echo", {{"Content-Encoding", "gzip"}}, "{}",
                          "application/json"),
              415);
}

TEST_F(HttpServerTest, ChunkedBodiesAreBounded) {
  Start();
  httplib::Client client = Client();
  const auto post = [&](size_t size) {
    return client.Post(
        "/echo",
        [size](size_t offset, httplib::DataSink& sink) {
          if (offset < size) {
            sink.write("xxxxxxxxxx", 10);
          } else {
            sink.done();
          }
          return true;
        },
        "application/json");
  };
  EXPECT_EQ(post(1000)->status, 200);
  ExpectError(post(1010), 413);
}

TEST_F(HttpServerTest, KeysAreWanted) {
  const auto keys = ApiKeys::Parse("# two\nfirst-key\n\n  second-key \r\n");
  ASSERT_TRUE(keys.ok()) << keys.status();
  Start(*keys);
  httplib::Client client = Client();
  EXPECT_EQ(client.Get("/open")->status, 200);
  ExpectError(client.Get("/things/a"), 401);
  ExpectError(client.Get("/nothing"), 401);
  for (const char* wrong :
       {"Bearer", "Bearer ", "Bearer first-ke", "Bearer first-key2",
        "Basic first-key", "first-key"}) {
    ExpectError(client.Get("/things/a", {{"Authorization", wrong}}), 401);
  }
  for (const char* right : {"Bearer first-key", "bearer second-key"}) {
    EXPECT_EQ(client.Get("/things/a", {{"Authorization", right}})->status, 200);
  }
}

TEST(ApiKeysTest, FilesWithoutAKeyAreRefused) {
  EXPECT_FALSE(ApiKeys::Parse("").ok());
  EXPECT_FALSE(ApiKeys::Parse("# only a comment\n").ok());
  EXPECT_FALSE(ApiKeys::Parse("two words\n").ok());
  EXPECT_TRUE(ApiKeys().Accept(""));
}

TEST_F(HttpServerTest, PagesOfOtherOriginsAreRefused) {
  Start();
  httplib::Client client = Client();
  const std::string own = absl::StrCat("127.0.0.1:", server_->port());
  EXPECT_EQ(
      client.Get("/open", {{"Host", own}, {"Origin", "http://" + own}})->status,
      200);
  for (const char* origin : {"http://evil.example", "null", "x"}) {
    ExpectError(client.Get("/open", {{"Origin", origin}}), 403);
  }
  // A name that was made to point at this machine.
  ExpectError(client.Get("/open", {{"Host", "evil.example"}}), 403);
  ExpectError(client.Get("/open", {{"Host", "127.evil.example"}}), 403);
  EXPECT_EQ(client.Get("/open", {{"Host", "localhost:5"}})->status, 200);
  EXPECT_EQ(client.Get("/open", {{"Host", "[::1]:5"}})->status, 200);
}

TEST_F(HttpServerTest, AnOriginMayBeAllowed) {
  options_.origin.cors_origin = "http://page.example";
  Start();
  httplib::Client client = Client();
  const httplib::Headers headers = {{"Origin", "http://page.example"}};
  const auto answer = client.Get("/open", headers);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->get_header_value("Access-Control-Allow-Origin"),
            "http://page.example");
  // Whatever headers a client's library sends of its own.
  httplib::Headers asks = headers;
  asks.emplace("Access-Control-Request-Method", "POST");
  asks.emplace("Access-Control-Request-Headers",
               "authorization,content-type,x-stainless-lang");
  const auto preflight = client.Options("/echo", asks);
  EXPECT_EQ(preflight->status, 204);
  EXPECT_EQ(preflight->get_header_value("Access-Control-Allow-Headers"),
            "authorization,content-type,x-stainless-lang");
  EXPECT_EQ(client.Options("/echo", headers)
                ->get_header_value("Access-Control-Allow-Headers"),
            "authorization, content-type, x-api-key");
  ExpectError(client.Get("/open", {{"Origin", "http://evil.example"}}), 403);
}

TEST_F(HttpServerTest, RoutesHaveErrorsOfTheirForm) {
  Start(*ApiKeys::Parse("secret"));
  server_->Add(
      "POST", "/other", false,
      [](HttpCall& call) {
        call.Answer(json{{"field", call.Query("field")}});
      },
      [](const ApiError& error) {
        return json{{"said", error.message}};
      });
  httplib::Client client = Client();
  const auto refused = client.Post("/other", "{}", "application/json");
  EXPECT_EQ(refused->status, 401);
  EXPECT_TRUE(json::parse(refused->body).contains("said")) << refused->body;
  const httplib::Headers key = {{"x-api-key", "secret"}};
  // Whatever is wrong with the request, its path says who reads the answer.
  const httplib::Headers elsewhere = {{"x-api-key", "secret"},
                                      {"Origin", "http://evil.example"}};
  for (const auto& [result, status] :
       {std::pair(client.Put("/other", key, "{}", "application/json"), 405),
        std::pair(client.Post("/other", elsewhere, "{}", "application/json"),
                  403),
        std::pair(client.Post("/other", key, "{}", "text/plain"), 415)}) {
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, status);
    EXPECT_TRUE(json::parse(result->body).contains("said")) << result->body;
  }
  EXPECT_EQ(
      client.Post("/other?a=b&field=7", key, "{}", "application/json")->body,
      R"({"field":"7"})");
  EXPECT_EQ(client.Post("/other?fields=7", key, "{}", "application/json")->body,
            R"({"field":""})");
}

TEST_F(HttpServerTest, NothingButOpenRoutesWhileItLoads) {
  Start();
  server_->SetRefusal("the model is being loaded");
  httplib::Client client = Client();
  EXPECT_EQ(client.Get("/open")->status, 200);
  ExpectError(client.Get("/things/a"), 503);
  server_->SetRefusal("");
  EXPECT_EQ(client.Get("/things/a")->status, 200);
}

TEST_F(HttpServerTest, WhatIsNoHttpIsToldSo) {
  Start();
  const char* const kTail = "\r\nConnection: close\r\n\r\n";
  for (const std::string& request :
       {std::string("rubbish\r\n\r\n"), std::string("GET /open\r\n\r\n"),
        absl::StrCat("GET /", std::string(3000, 'x'), " HTTP/9.9", kTail)}) {
    SCOPED_TRACE(request);
    EXPECT_TRUE(absl::StartsWith(Raw(request), "HTTP/1.1 400"));
  }
  // Headers above the limit, in one line and in many.
  EXPECT_TRUE(absl::StartsWith(
      Raw(absl::StrCat("GET /open HTTP/1.1\r\nX: ", std::string(8000, 'x'))),
      "HTTP/1.1 431"));
  std::string many = "GET /open HTTP/1.1\r\n";
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&many, "X", i, ": 1\r\n");
  EXPECT_TRUE(absl::StartsWith(Raw(many), "HTTP/1.1 431"));
  // Bodies whose length is not clear.
  for (const char* headers :
       {"Content-Length: 1\r\nContent-Length: 2", "Content-Length: -1",
        "Content-Length: 1\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip", "Content-Length: 99999999999999999999"}) {
    SCOPED_TRACE(headers);
    EXPECT_TRUE(absl::StartsWith(
        Raw(absl::StrCat("POST /echo HTTP/1.1\r\n", headers, kTail, "xx")),
        "HTTP/1.1 400"));
  }
  // A body that nobody reads is not the next request.
  const std::string answers =
      Raw("GET /open HTTP/1.1\r\nContent-Length: 30\r\n\r\n"
          "GET /things/x HTTP/1.1\r\n\r\n      ");
  EXPECT_TRUE(absl::StrContains(answers, "open")) << answers;
  EXPECT_FALSE(absl::StrContains(answers, "rest")) << answers;
  // Still there.
  EXPECT_EQ(Client().Get("/open")->status, 200);
}

constexpr char kEcho[] =
    "POST /echo HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\n";

// What follows a body that is read in two ways is no request.
TEST_F(HttpServerTest, BodiesEndWhereAllAgree) {
  Start();
  const std::string other = "GET /things/x HTTP/1.1\r\n\r\n";
  for (const std::string& rest : {
           std::string("Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
           std::string("Content-Length: 0\r\nContent-Length: 3\r\n\r\nabc"),
           std::string("Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"),
           std::string("Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
           std::string("Transfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n"
                       "\r\n"),
           std::string("Transfer-Encoding: chunked\r\n\r\n2\r\nab0\r\n\r\n"),
           std::string("Transfer-Encoding: chunked\r\n\r\n2\r\nab\n0\n\n"),
           std::string("Transfer-Encoding: chunked\r\n\r\n0\r\nX : 1\r\n\r\n"),
           std::string("Host: localhost\r\n\r\n"),
           std::string("X: 1\n\n"),
           std::string("X: 1\r\n folded\r\n\r\n"),
       }) {
    SCOPED_TRACE(rest);
    const std::string answer = Raw(absl::StrCat(
        "POST /echo HTTP/1.1\r\nHost: localhost\r\n", rest, other));
    EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 400")) << answer;
    EXPECT_TRUE(absl::StrContains(answer, "Connection: close")) << answer;
    EXPECT_FALSE(absl::StrContains(answer, "rest")) << answer;
  }
}

TEST_F(HttpServerTest, TrailersAreReadAndTheNextRequestIsAnswered) {
  Start();
  const std::string answers =
      Raw("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
          "2;x=y\r\nab\r\n1\r\nc\r\n0\r\nX-Sum: 1\r\n\r\n\r\n"
          "GET /things/x HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(absl::StrContains(answers, R"({"body":"abc"})")) << answers;
  EXPECT_TRUE(absl::StrContains(answers, R"({"rest":"x"})")) << answers;
}

// The library would match it with a recursive expression, on this thread.
TEST_F(HttpServerTest, WhatIsNotAskedForIsNotParsed) {
  options_.limits.header_bytes = 1 << 20;
  options_.limits.body_bytes = 1 << 20;
  Start();
  const std::string ones(900000, '1');
  for (const std::string& field :
       {absl::StrCat("Range: bytes=", ones, "-"),
        absl::StrCat("Range: bytes=0-0", std::string(300000, ','), "1-"),
        std::string("Range: bytes=9-1"), absl::StrCat("Accept: ", ones),
        absl::StrCat("Accept-Encoding: gzip, br, ", ones),
        absl::StrCat("Content-Type: multipart/form-data; boundary=", ones),
        absl::StrCat("Cookie: %", ones)}) {
    SCOPED_TRACE(field.substr(0, 40));
    const std::string answer = Raw(absl::StrCat(
        "GET /open?", std::string(10000, '&'), "a=%zz HTTP/1.1\r\n", field,
        "\r\nConnection: close\r\n\r\n"));
    EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 200")) << answer;
    EXPECT_TRUE(absl::EndsWith(answer, R"({"open":true})")) << answer;
  }
  EXPECT_TRUE(absl::StartsWith(
      Raw(absl::StrCat("GET /", ones,
                       " HTTP/1.1\r\nConnection: close\r\n\r\n")),
      "HTTP/1.1 404"));
}

TEST_F(HttpServerTest, HeadersMayHaveAsManyBytesAsIsSaid) {
  for (const int64_t most : {300, 5000, 100000}) {
    options_.limits.header_bytes = most;
    Start();
    std::string head = "GET /open HTTP/1.1\r\nConnection: close\r\nX: \r\n\r\n";
    head.insert(head.size() - 4, static_cast<size_t>(most) - head.size(), 'x');
    EXPECT_TRUE(absl::StartsWith(Raw(head), "HTTP/1.1 200")) << most;
    head.insert(head.size() - 4, "x");
    EXPECT_TRUE(absl::StartsWith(Raw(head), "HTTP/1.1 431")) << most;
    server_->Stop(absl::Seconds(5));
    thread_.join();
  }
  server_ = nullptr;
}

TEST_F(HttpServerTest, KeepAliveIsTheTruth) {
  options_.limits.idle_time = absl::Seconds(7);
  Start();
  const std::string answers =
      Raw("GET /open HTTP/1.1\r\n\r\n"
          "GET /open HTTP/1.1\r\nConnection: foo, Close\r\n\r\n");
  const size_t second = answers.rfind("HTTP/1.1");
  EXPECT_TRUE(
      absl::StrContains(answers.substr(0, second), "Keep-Alive: timeout=7\r\n"))
      << answers;
  EXPECT_FALSE(absl::StrContains(answers.substr(second), "Keep-Alive"));
  EXPECT_TRUE(
      absl::StrContains(answers.substr(second), "Connection: close\r\n"));
  for (const char* ends : {"GET /open HTTP/1.0\r\nConnection: keep-alive\r\n",
                           "GET /open HTTP/1.1\r\nContent-Length: 3\r\n",
                           "GET /open HTTP/1.1\r\nContent-Length: x\r\n"}) {
    const std::string answer = Raw(absl::StrCat(ends, "\r\n"));
    EXPECT_FALSE(absl::StrContains(answer, "Keep-Alive")) << answer;
    EXPECT_TRUE(absl::StrContains(answer, "Connection: close\r\n")) << answer;
  }
  const std::string head =
      Raw("HEAD /open HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_FALSE(absl::StrContains(head, "Accept-Ranges")) << head;
}

TEST_F(HttpServerTest, ContinueIsSaidToBodiesThatAreWanted) {
  Start();
  const std::string yes = Raw(absl::StrCat(kEcho, "Expect: 100-continue\r\n",
                                           "Content-Length: 2\r\n\r\nab"));
  EXPECT_TRUE(
      absl::StartsWith(yes, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200"))
      << yes;
  const std::string no = Raw(absl::StrCat(kEcho, "Expect: 100-continue\r\n",
                                          "Content-Length: 20000\r\n\r\n"));
  EXPECT_TRUE(absl::StartsWith(no, "HTTP/1.1 413")) << no;
  EXPECT_TRUE(absl::StartsWith(
      Raw(absl::StrCat(kEcho, "Expect: a miracle\r\n\r\n")), "HTTP/1.1 417"));
}

TEST(HostName, WhatNoHostCanBeIsRefused) {
  for (const char* name : {"proxy.example", "a", "192.168.7.9", "::1"}) {
    EXPECT_TRUE(CheckHostName(name).ok()) << name;
  }
  for (const char* name : {"", "proxy.example:8080", "http://proxy.example",
                           "[::1]", "*.example", "a b", "proxy.example/"}) {
    EXPECT_FALSE(CheckHostName(name).ok()) << name;
  }
}

TEST(OriginName, WhatNoBrowserSendsIsRefused) {
  for (const char* origin : {"*", "null", "https://chat.example",
                             "http://localhost:3000", "http://[::1]:8080"}) {
    EXPECT_TRUE(CheckOriginName(origin).ok()) << origin;
  }
  for (const char* origin :
       {"", "chat.example", "https://", "https://chat.example/",
        "https://chat.example/page", "*.example", "https://*.example",
        "https://a, https://b", "://a"}) {
    EXPECT_FALSE(CheckOriginName(origin).ok()) << origin;
  }
}

TEST_F(HttpServerTest, NamesOfOthersAreRefusedAtEveryAddress) {
  host_ = "0.0.0.0";
  options_.origin.hosts = {"proxy.example"};
  Start();
  EXPECT_FALSE(server_->loopback());
  httplib::Client client = Client();
  std::vector<std::string> names = MachineNames();
  names.insert(names.end(), {"localhost", "127.0.0.1", "192.168.7.9",
                             "[2001:db8::1]", "Proxy.Example"});
  for (const std::string& name : names) {
    for (const char* port : {"", ":80"}) {
      EXPECT_EQ(client.Get("/open", {{"Host", name + port}})->status, 200)
          << name;
    }
  }
  for (const char* name :
       {"evil.example", "192.168.7.9.evil.example", "localhost.evil.example",
        "localhost:80.evil.example", "[::1].evil.example", "localhost@evil",
        "proxy.example.evil", "[evil.example]"}) {
    ExpectError(client.Get("/open", {{"Host", name}}), 403);
  }
}

// Nothing is free below the limit that this sets.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest = open("/dev/null", O_RDONLY);
    close(lowest);
    const rlimit now = {static_cast<rlim_t>(lowest), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &now);
  }
  ~NoMoreDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

TEST_F(HttpServerTest, IdleConnectionsGiveWayWhereDescriptorsEnd) {
  options_.limits.idle_time = absl::Hours(1);
  Start();
  const std::string wait = "POST /wait HTTP/1.1\r\n\r\n";
  const std::string ask = "GET /open HTTP/1.1\r\nConnection: close\r\n\r\n";
  const int idle = Connect(), busy = Connect();
  send(busy, wait.data(), wait.size(), MSG_NOSIGNAL);
  entered_.WaitForNotification();
  // Their sockets are made before the limit; the server's are not.
  const int first = socket(AF_INET, SOCK_STREAM, 0);
  const int second = socket(AF_INET, SOCK_STREAM, 0);
  const NoMoreDescriptors limit;
  const auto answer = [&](int fd) {
    ConnectTo(fd);
    send(fd, ask.data(), ask.size(), MSG_NOSIGNAL);
    return ReadAll(fd);
  };
  // The idle one's is taken.
  EXPECT_TRUE(absl::StartsWith(answer(first), "HTTP/1.1 200"));
  EXPECT_EQ(ReadAll(idle), "");
  // That one has ended; what it had is used up.
  std::vector<int> taken;
  while (taken.empty() || taken.back() >= 0) taken.push_back(dup(busy));
  taken.pop_back();
  EXPECT_TRUE(absl::StartsWith(answer(second), "HTTP/1.1 503"));
  for (const int fd : {idle, first, second, busy}) close(fd);
  for (const int fd : taken) close(fd);
  gone_.WaitForNotification();
}

TEST_F(HttpServerTest, TheWallClockMovesNoDeadline) {
  Start();
  const int fd = Connect();
  const std::string half = "GET /open HTTP/1.1\r\nConnection: close\r\n";
  send(fd, half.data(), half.size(), MSG_NOSIGNAL);
  while (server_->connections() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  clock_offset_seconds = 3600;
  send(fd, "\r\n", 2, MSG_NOSIGNAL);
  EXPECT_TRUE(absl::StartsWith(ReadAll(fd), "HTTP/1.1 200"));
  close(fd);
  clock_offset_seconds = 0;
}

TEST_F(HttpServerTest, AWallClockThatGoesBackGivesNoTime) {
  options_.limits.header_time = absl::Milliseconds(100);
  Start();
  const int fd = Connect();
  send(fd, "GET", 3, MSG_NOSIGNAL);
  clock_offset_seconds = -3600;
  EXPECT_TRUE(absl::StartsWith(ReadAll(fd), "HTTP/1.1 408"));
  close(fd);
  clock_offset_seconds = 0;
}

TEST_F(HttpServerTest, LargeAnswersAreSentWhileTheyAreWritten) {
  Start();
  httplib::Client client = Client();
  client.set_read_timeout(300);
  for (const int64_t count : {10, 40000}) {
    const auto answer = client.Get(absl::StrCat("/many/", count));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->has_header("Content-Length"), count == 10);
    const json list = json::parse(answer->body);
    ASSERT_EQ(list.size(), static_cast<size_t>(count));
    EXPECT_EQ(list.back(), json({{"i", count - 1}, {"text", "a \"quote\""}}));
  }
  const std::string old = Raw("GET /many/40000 HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(absl::EndsWith(old, "]"));
  EXPECT_FALSE(absl::StrContains(old, "chunked"));
}

TEST_F(HttpServerTest, SlowRequestsAreGivenUp) {
  options_.limits.header_time = absl::Milliseconds(50);
  options_.limits.body_time = absl::Milliseconds(50);
  options_.limits.idle_time = absl::Milliseconds(50);
  Start();
  EXPECT_EQ(Raw(""), "");
  EXPECT_TRUE(absl::StartsWith(Raw("GET /open HTTP/1.1\r\nX"), "HTTP/1.1 408"));
  EXPECT_TRUE(
      absl::StartsWith(Raw("POST /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nx"),
                       "HTTP/1.1 408"));
}

TEST_F(HttpServerTest, AClientThatGoesIsSeen) {
  Start();
  const int fd = Connect();
  const std::string request = "POST /wait HTTP/1.1\r\n\r\n";
  send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  entered_.WaitForNotification();
  EXPECT_FALSE(gone_.HasBeenNotified());
  close(fd);
  gone_.WaitForNotification();
}

TEST_F(HttpServerTest, TooManyConnectionsAreRefusedButIdleOnesGiveWay) {
  options_.connections = 1;
  Start();
  httplib::Client idle = Client();
  idle.set_keep_alive(true);
  EXPECT_EQ(idle.Get("/open")->status, 200);
  // Its thread may still be on its way to being idle.
  int status = 503;
  for (int i = 0; i < 1000 && status == 503; ++i) {
    status = Client().Get("/open")->status;
  }
  EXPECT_EQ(status, 200);
  const std::string request = "POST /wait HTTP/1.1\r\n\r\n";
  int busy = -1;
  // The thread of the one before may still be on its way to its end: then this
  // one is refused, too.
  do {
    if (busy >= 0) close(busy);
    busy = Connect();
    send(busy, request.data(), request.size(), MSG_NOSIGNAL);
  } while (!entered_.WaitForNotificationWithTimeout(absl::Seconds(1)));
  ExpectError(Client().Get("/open"), 503);
  close(busy);
  gone_.WaitForNotification();
}

TEST_F(HttpServerTest, APortInUseIsTold) {
  Start();
  HttpServer other(options_, {});
  const absl::Status status = other.Listen("127.0.0.1", server_->port());
  EXPECT_TRUE(absl::StrContains(status.message(), "in use")) << status;
  EXPECT_FALSE(other.Listen("no.such.host.invalid", 0).ok());
}

}  // namespace
}  // namespace weft
