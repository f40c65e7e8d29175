#include "serve/chunked_body.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "serve/request_head.h"

namespace weft {
namespace {

// More are no number of bytes that could come.
constexpr size_t kMostDigits = 15;

}  // namespace

absl::Status ChunkedBody::ReadSize() {
  size_t digits = 0;
  while (digits < line_.size() && absl::ascii_isxdigit(line_[digits])) ++digits;
  // Spaces may stand before an extension only.
  const absl::string_view rest = absl::StripLeadingAsciiWhitespace(
      absl::string_view(line_).substr(digits));
  if (digits == 0 || digits > kMostDigits ||
      (digits < line_.size() && !absl::StartsWith(rest, ";")) ||
      !absl::SimpleHexAtoi(line_.substr(0, digits), &chunk_)) {
    return absl::InvalidArgumentError("a chunk's size is no number");
  }
  if (chunk_ > left_) return absl::OutOfRangeError("the body is too large");
  left_ -= chunk_;
  part_ = chunk_ == 0 ? Part::kTrailer : Part::kData;
  return absl::OkStatus();
}

absl::Status ChunkedBody::EndLine() {
  if (part_ == Part::kSize) {
    WEFT_RETURN_IF_ERROR(ReadSize());
  } else if (part_ == Part::kDataEnd) {
    part_ = Part::kSize;
  } else if (line_.empty()) {
    part_ = Part::kEnd;
  } else {
    WEFT_RETURN_IF_ERROR(ParseField(line_).status());  // a trailer
  }
  line_.clear();
  return absl::OkStatus();
}

absl::StatusOr<size_t> ChunkedBody::Push(absl::string_view bytes,
                                         std::string* body) {
  size_t at = 0;
  while (at < bytes.size() && part_ != Part::kEnd) {
    if (part_ == Part::kData) {
      const size_t count =
          std::min(bytes.size() - at, static_cast<size_t>(chunk_));
      body->append(bytes.data() + at, count);
      at += count;
      chunk_ -= static_cast<int64_t>(count);
      if (chunk_ == 0) part_ = Part::kDataEnd;
      continue;
    }
    if (--framing_left_ < 0) {
      return absl::OutOfRangeError("the body has too much around its chunks");
    }
    const char c = bytes[at++];
    const bool after_cr = absl::EndsWith(line_, "\r");
    if ((c == '\n') != after_cr ||
        (part_ == Part::kDataEnd && !after_cr && c != '\r')) {
      return absl::InvalidArgumentError(
          "a chunk, or a line around it, does not end in CR LF");
    }
    if (c == '\n') {
      line_.pop_back();
      WEFT_RETURN_IF_ERROR(EndLine());
    } else {
      line_ += c;
    }
  }
  return at;
}

}  // namespace weft
