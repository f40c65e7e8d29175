#include "serve/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

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
    server_->Add("POST", "/echo", false, [](HttpCall& call) {
      call.Answer(json{{"body", call.body}});
    });
    server_->Add("GET", "/things/*", false, [](HttpCall& call) {
      call.Answer(json{{"rest", call.rest}});
    });
    server_->Add("POST", "/wait", false, [this](HttpCall& call) {
      entered_.Notify();
      while (!call.connection.PeerGone()) absl::SleepFor(absl::Milliseconds(1));
      gone_.Notify();
    });
    ASSERT_TRUE(server_->Listen("127.0.0.1", 0).ok());
    thread_ = std::thread([this] { server_->Serve(); });
  }

  httplib::Client Client() {
    return httplib::Client("127.0.0.1", server_->port());
  }

  int Connect() {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(
        connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
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
  EXPECT_EQ(client.Options("/echo", headers)->status, 204);
  ExpectError(client.Get("/open", {{"Origin", "http://evil.example"}}), 403);
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
  EXPECT_EQ(Client().Get("/open")->status, 200);
  const int busy = Connect();
  const std::string request = "POST /wait HTTP/1.1\r\n\r\n";
  send(busy, request.data(), request.size(), MSG_NOSIGNAL);
  entered_.WaitForNotification();
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
