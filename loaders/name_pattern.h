// Picks tensors by name, with what people write for such a thing.
//
// Found anywhere in the name. A regular expression (PCRE2): `ffn_down`,
// `blk\.0\.`, `blk.*.attn_v.weight`, `blk\.[0-3]\.`. A file pattern such as
// `*attn_v*` or `ffn_*` is one too, by the letter: "attn_" and any number of v.
// Nobody means that, so a pattern without backslashes in which a `*` follows
// neither `.` nor a closing bracket is read as a file pattern: `*` any text,
// `?` one character, the rest as it stands.
//
// And without backslashes, the dots around the number of a block mean dots:
// `blk.1.*`, `blk.[0-3].ffn` and `blk.(1|12).` are blocks 1, 0 to 3, 1 and 12,
// not also 10 to 19.
//
// Matching work is limited, so no pattern can hang. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct pcre2_real_code_8;

namespace weft {

class NamePattern {
 public:
  // InvalidArgument names the pattern, the place and PCRE2's reason.
  static absl::StatusOr<NamePattern> Parse(absl::string_view pattern);

  bool Matches(absl::string_view name) const;
  const std::string& text() const { return text_; }

 private:
  NamePattern(std::string text, std::shared_ptr<pcre2_real_code_8> code)
      : text_(std::move(text)), code_(std::move(code)) {}

  std::string text_;
  std::shared_ptr<pcre2_real_code_8> code_;
};

}  // namespace weft
