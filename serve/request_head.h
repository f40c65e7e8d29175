// The head of an HTTP/1.1 request (RFC 9112): its first line and its fields.
//
// Idea: a proxy and this server must agree where a request ends, or what one
// takes for a body is a request to the other. So nothing is guessed: what the
// grammar does not allow is refused, and so is everything that has been read in
// two ways (spaces before a colon, folded lines, lines that end in LF alone,
// lengths that are told twice). Pure functions of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

struct RequestHead {
  std::string method;
  std::string target;  // as it was sent: path and query
  std::string path;    // of the target, its %XX decoded
  bool http_1_0 = false;
  // In their order, values without spaces around them.
  std::vector<std::pair<std::string, std::string>> fields;

  // How long the body is.
  bool chunked = false;
  int64_t content_length = 0;

  bool keep_alive = true;         // the client wants to ask more
  bool expects_continue = false;  // it waits for "100 Continue"

  bool HasBody() const { return chunked || content_length > 0; }
  // The first field of this name, in any case of letters; nullptr: none.
  const std::string* Find(absl::string_view name) const;
  // The same; empty where there is none.
  std::string Value(absl::string_view name) const;
};

// Where the head at the beginning of `bytes` ends, behind its empty line; 0
// when more must come. An empty line before it belongs to it. Errors: bytes
// that no head has, as soon as they are there. `*scanned` is how far earlier
// calls have looked, at first 0.
absl::StatusOr<size_t> FindHeadEnd(absl::string_view bytes, size_t* scanned);

// What %41 and the like stand for. Error: a % without two digits.
absl::StatusOr<std::string> DecodePercent(absl::string_view text);

// The whole head, its empty line included. Errors: what is wrong.
absl::StatusOr<RequestHead> ParseRequestHead(absl::string_view bytes);

// One "Name: value", without its line end.
absl::StatusOr<std::pair<std::string, std::string>> ParseField(
    absl::string_view line);

}  // namespace weft
