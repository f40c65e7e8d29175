#include "serve/request_head.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace weft {
namespace {

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

bool IsTokenCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::StrContains("!#$%&'*+-.^_`|~", c);
}

bool IsToken(absl::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), IsTokenCharacter);
}

bool IsControl(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

absl::string_view Trim(absl::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

absl::Status ParseRequestLine(absl::string_view line, RequestHead* head) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ');
  if (parts.size() != 3 || !IsToken(parts[0]) ||
      (parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0")) {
    return Wrong("the request is no HTTP that this server knows");
  }
  head->method = std::string(parts[0]);
  head->target = std::string(parts[1]);
  head->http_1_0 = parts[2] == "HTTP/1.0";
  const bool any = head->method == "OPTIONS" && head->target == "*";
  if (!any && !absl::StartsWith(head->target, "/")) {
    return Wrong("the request's target is no path");
  }
  WEFT_ASSIGN_OR_RETURN(head->path,
                        DecodePercent(parts[1].substr(0, parts[1].find('?'))));
  return absl::OkStatus();
}

int64_t Count(const RequestHead& head, absl::string_view name) {
  return std::count_if(head.fields.begin(), head.fields.end(),
                       [name](const auto& field) {
                         return absl::EqualsIgnoreCase(field.first, name);
                       });
}

absl::Status ReadFraming(RequestHead* head) {
  const int64_t lengths = Count(*head, "Content-Length");
  const int64_t transfers = Count(*head, "Transfer-Encoding");
  if (lengths + transfers > 1) {
    return Wrong(
        "the body's length is not clear: want one Content-Length, or chunks");
  }
  if (transfers == 1) {
    if (head->http_1_0 ||
        !absl::EqualsIgnoreCase(head->Value("Transfer-Encoding"), "chunked")) {
      return Wrong("want no Transfer-Encoding but chunked, in HTTP/1.1");
    }
    head->chunked = true;
  }
  if (lengths == 1) {
    const std::string text = head->Value("Content-Length");
    if (text.empty() ||
        text.find_first_not_of("0123456789") != std::string::npos ||
        !absl::SimpleAtoi(text, &head->content_length)) {
      return Wrong("Content-Length is no number");
    }
  }
  return absl::OkStatus();
}

// What is said of the connection, all fields together.
void ReadConnection(RequestHead* head) {
  // Clients of 1.0 that would keep a connection are few; it ends.
  head->keep_alive = !head->http_1_0;
  for (const auto& field : head->fields) {
    if (!absl::EqualsIgnoreCase(field.first, "Connection")) continue;
    for (const absl::string_view option : absl::StrSplit(field.second, ',')) {
      if (absl::EqualsIgnoreCase(Trim(option), "close")) {
        head->keep_alive = false;
      }
    }
  }
}

}  // namespace

absl::StatusOr<std::string> DecodePercent(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const absl::string_view digits = text.substr(i + 1, 2);
    if (digits.size() < 2 || !absl::ascii_isxdigit(digits[0]) ||
        !absl::ascii_isxdigit(digits[1])) {
      return Wrong("the path has a % without two hexadecimal digits");
    }
    decoded += absl::HexStringToBytes(digits);
    i += 2;
  }
  return decoded;
}

const std::string* RequestHead::Find(absl::string_view name) const {
  for (const auto& field : fields) {
    if (absl::EqualsIgnoreCase(field.first, name)) return &field.second;
  }
  return nullptr;
}

std::string RequestHead::Value(absl::string_view name) const {
  const std::string* found = Find(name);
  return found == nullptr ? "" : *found;
}

absl::StatusOr<size_t> FindHeadEnd(absl::string_view bytes, size_t* scanned) {
  for (size_t& i = *scanned; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (c == '\n') {
      if (i == 0 || bytes[i - 1] != '\r') {
        return Wrong("a line of the request ends in LF alone: want CR LF");
      }
      // Two line ends that are not the first two.
      if (i > 3 && bytes.substr(i - 3, 4) == "\r\n\r\n") return ++i;
    } else if (i > 0 && bytes[i - 1] == '\r') {
      return Wrong("the request's head has a CR that ends no line");
    } else if (IsControl(c) && c != '\r' && c != '\t') {
      return Wrong("the request is no HTTP that this server knows");
    }
  }
  return 0;
}

absl::StatusOr<std::pair<std::string, std::string>> ParseField(
    absl::string_view line) {
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos || !IsToken(line.substr(0, colon))) {
    return Wrong("a header is no name, colon and value");
  }
  const absl::string_view value = Trim(line.substr(colon + 1));
  for (const char c : value) {
    if (IsControl(c) && c != '\t') {
      return Wrong("a header has a control character");
    }
  }
  return std::make_pair(std::string(line.substr(0, colon)), std::string(value));
}

absl::StatusOr<RequestHead> ParseRequestHead(absl::string_view bytes) {
  absl::ConsumePrefix(&bytes, "\r\n");  // of a body before, as some send it
  if (!absl::ConsumeSuffix(&bytes, "\r\n\r\n")) {
    return Wrong("the request's head has no end");
  }
  RequestHead head;
  bool first = true;
  for (const absl::string_view line : absl::StrSplit(bytes, "\r\n")) {
    if (first) {
      WEFT_RETURN_IF_ERROR(ParseRequestLine(line, &head));
      first = false;
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(auto field, ParseField(line));
    head.fields.push_back(std::move(field));
  }
  if (Count(head, "Host") > 1) return Wrong("want one Host");
  WEFT_RETURN_IF_ERROR(ReadFraming(&head));
  ReadConnection(&head);
  const std::string* expected = head.Find("Expect");
  if (expected != nullptr && !head.http_1_0) {
    if (!absl::EqualsIgnoreCase(*expected, "100-continue")) {
      return absl::FailedPreconditionError(
          "no expectation but 100-continue is known");
    }
    head.expects_continue = true;
  }
  return head;
}

}  // namespace weft
