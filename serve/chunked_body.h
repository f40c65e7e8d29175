// A body in chunks (RFC 9112, section 7.1), taken apart as it comes.
//
// Strict as the head is (serve/request_head.h): a size is hexadecimal digits
// and nothing else, every chunk ends in CR LF. Extensions and trailers are read
// and left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

class ChunkedBody {
 public:
  // At most `most` bytes of body, and `most_framing` around them.
  ChunkedBody(int64_t most, int64_t most_framing)
      : left_(most), framing_left_(most_framing) {}

  // Takes the next bytes and appends what they hold to `*body`. Returns how
  // many were of this body: all, unless it has ended. Errors:
  // kInvalidArgument, or kOutOfRange when it is larger than it may be.
  absl::StatusOr<size_t> Push(absl::string_view bytes, std::string* body);
  bool done() const { return part_ == Part::kEnd; }

 private:
  enum class Part { kSize, kData, kDataEnd, kTrailer, kEnd };

  // Takes one line of `line_`.
  absl::Status EndLine();
  absl::Status ReadSize();

  Part part_ = Part::kSize;
  std::string line_;   // as far as it has come
  int64_t chunk_ = 0;  // bytes of it that are still to come
  int64_t left_, framing_left_;
};

}  // namespace weft
