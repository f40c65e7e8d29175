// A regular expression that picks tensors by name.
//
// PCRE2, found anywhere in the name: `ffn_down`, `blk\.0\.` and
// `blk.*.attn_v.weight` do what they look like. A leading `*`, which no regular
// expression may have, is taken for `.*`. Matching work is limited, so no
// pattern can hang. Thread-safe.
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
