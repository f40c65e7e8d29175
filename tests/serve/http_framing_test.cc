#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "serve/chunked_body.h"
#include "serve/request_head.h"

namespace weft {
namespace {

absl::StatusOr<RequestHead> Parse(
    const std::string& fields, const std::string& line = "POST /a HTTP/1.1") {
  return ParseRequestHead(absl::StrCat(line, "\r\n", fields, "\r\n"));
}

TEST(RequestHeadTest, WhatIsSaid) {
  const auto head = Parse(
      "Host: a:1\r\nX-Empty:\r\nx-value:\t one, two  \r\nContent-Length: 12\r\n"
      "Expect: 100-Continue\r\n",
      "POST /v1/a%20b%2f?c=%zz HTTP/1.1");
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->method, "POST");
  EXPECT_EQ(head->path, "/v1/a b/");
  EXPECT_EQ(head->Value("HOST"), "a:1");
  EXPECT_EQ(head->Value("X-Value"), "one, two");
  ASSERT_NE(head->Find("X-Empty"), nullptr);
  EXPECT_EQ(head->Value("X-Empty"), "");
  EXPECT_EQ(head->Find("X"), nullptr);
  EXPECT_EQ(head->content_length, 12);
  EXPECT_TRUE(head->HasBody());
  EXPECT_TRUE(head->keep_alive);
  EXPECT_TRUE(head->expects_continue);
  EXPECT_FALSE(Parse("Content-Length: 0\r\n")->HasBody());
  EXPECT_TRUE(Parse("transfer-encoding: Chunked\r\n")->chunked);
  EXPECT_FALSE(Parse("Connection: x, Close\r\n")->keep_alive);
  EXPECT_FALSE(
      Parse("Connection: keep-alive\r\n", "GET / HTTP/1.0")->keep_alive);
  // Values are taken as they are.
  EXPECT_EQ(Parse("Origin: http://a%3a1\r\n")->Value("Origin"), "http://a%3a1");
}

TEST(RequestHeadTest, WhatCanBeReadInTwoWaysIsRefused) {
  for (const char* fields :
       {"Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding\t: chunked\r\n",
        "Content-Length : 3\r\n",
        " Content-Length: 3\r\n",
        "X: 1\r\n folded\r\n",
        "X: 1\r\n\tfolded\r\n",
        ": 1\r\n",
        "X\r\n",
        "X Y: 1\r\n",
        "X\x01: 1\r\n",
        "X: \x01\r\n",
        "X: a\x7f\r\n",
        "Content-Length: 3\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n",
        "Content-Length: 3, 3\r\n",
        "Content-Length: +3\r\n",
        "Content-Length: -3\r\n",
        "Content-Length: 0x3\r\n",
        "Content-Length: 3 \x0b\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: identity, chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: \r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Host: a\r\nHost: a\r\n",
        "Host: a\r\nhost: b\r\n"}) {
    EXPECT_FALSE(Parse(fields).ok()) << fields;
  }
  EXPECT_FALSE(Parse("Transfer-Encoding: chunked\r\n", "POST / HTTP/1.0").ok());
  for (const char* line :
       {"GET / HTTP/1.2", "GET / HTTP/2.0", "GET /  HTTP/1.1",
        " GET / HTTP/1.1", "GET /", "GET", "G\tT / HTTP/1.1", "GET a HTTP/1.1",
        "* * HTTP/1.1 ", "GET http://a/ HTTP/1.1", "GET /%4 HTTP/1.1",
        "GET /%u0041 HTTP/1.1", "GET /a b HTTP/1.1", "GET * HTTP/1.1"}) {
    EXPECT_FALSE(Parse("", line).ok()) << line;
  }
  EXPECT_TRUE(Parse("", "OPTIONS * HTTP/1.1").ok());
  EXPECT_EQ(Parse("Expect: more\r\n").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(RequestHeadTest, TheEndIsFoundByteByByte) {
  const std::string head = "\r\nGET / HTTP/1.1\r\nA: 1\r\n\r\n";
  size_t scanned = 0;
  for (size_t size = 0; size < head.size(); ++size) {
    EXPECT_EQ(*FindHeadEnd(head.substr(0, size), &scanned), 0u);
  }
  EXPECT_EQ(*FindHeadEnd(head + "more", &scanned), head.size());
  EXPECT_TRUE(ParseRequestHead(head).ok());
  for (const std::string& wrong :
       {std::string("GET / HTTP/1.1\nA"), std::string("\n"),
        std::string("GET / HTTP/1.1\r\nA: 1\rB"), std::string("GET /\0", 6),
        std::string("\x16\x03\x01")}) {
    scanned = 0;
    EXPECT_FALSE(FindHeadEnd(wrong, &scanned).ok()) << wrong;
  }
}

// The body, or the message of the error; `rest` is how many bytes were left.
std::string Decode(const std::string& bytes, size_t step, size_t* rest) {
  ChunkedBody chunks(1000, 2000);
  std::string body;
  *rest = bytes.size();
  for (size_t at = 0; at < bytes.size() && !chunks.done(); at += step) {
    const auto taken =
        chunks.Push(absl::string_view(bytes).substr(at, step), &body);
    if (!taken.ok()) return absl::StrCat("error: ", taken.status().message());
    *rest -= *taken;
  }
  return chunks.done() ? body : "more";
}

TEST(ChunkedBodyTest, ChunksExtensionsAndTrailers) {
  for (const char* bytes :
       {"5\r\nhello\r\n0\r\n\r\n", "0005\r\nhello\r\n000\r\n\r\n",
        "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        "5;a=b;c=\"d;e\"\r\nhello\r\n0;x\r\n\r\n", "5 ;a\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nX-Sum: 1\r\nContent-Length: 7\r\n\r\n"}) {
    for (const size_t step : {1, 2, 3, 100}) {
      size_t rest = 0;
      EXPECT_EQ(Decode(absl::StrCat(bytes, "GET /"), step, &rest), "hello")
          << bytes;
      EXPECT_EQ(rest, 5u) << bytes;
    }
  }
  size_t rest = 0;
  EXPECT_EQ(Decode("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", 7, &rest),
            "01234567890123456789");
  EXPECT_EQ(Decode("0\r\n\r\n", 1, &rest), "");
  EXPECT_EQ(Decode("5\r\nhello\r\n0\r\n", 1, &rest), "more");
}

TEST(ChunkedBodyTest, WhatIsNoChunkIsRefused) {
  for (const std::string& bytes :
       {std::string("0x5\r\nhello\r\n0\r\n\r\n"),
        std::string("+5\r\nhello\r\n0\r\n\r\n"),
        std::string("-5\r\nhello\r\n0\r\n\r\n"),
        std::string(" 5\r\nhello\r\n0\r\n\r\n"),
        std::string("5 \r\nhello\r\n0\r\n\r\n"),
        std::string("5x\r\nhello\r\n0\r\n\r\n"),
        std::string("\r\nhello\r\n0\r\n\r\n"),
        std::string(";a\r\nhello\r\n0\r\n\r\n"),
        std::string("5\nhello\r\n0\r\n\r\n"),
        std::string("5\r\nhello0\r\n\r\n"),
        std::string("5\r\nhello\n0\r\n\r\n"),
        std::string("5\r\nhellox\r\n0\r\n\r\n"),
        std::string("5\r\nhello\r\r\n0\r\n\r\n"),
        std::string("5\r\nhello\r\n0\r\nX\r\n\r\n"),
        std::string("5\r\nhello\r\n0\r\nX : 1\r\n\r\n"),
        std::string("5\r\nhello\r\n0\r\n\n"),
        std::string("FFFFFFFFFFFFFFFF\r\n"),
        std::string("10000000000000005\r\n"),
        std::string("3E9\r\n"),
        absl::StrCat("1;", std::string(3000, 'x'))}) {
    for (const size_t step : {1, 3, 5000}) {
      size_t rest = 0;
      EXPECT_TRUE(absl::StartsWith(Decode(bytes, step, &rest), "error"))
          << bytes;
    }
  }
}

}  // namespace
}  // namespace weft
