// A thin owner of PCRE2's compiled pattern.

#include "loaders/name_pattern.h"

#include <pcre2.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace weft {
namespace {

bool IsFilePattern(absl::string_view pattern) {
  if (absl::StrContains(pattern, "\\")) return false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '*') continue;
    if (i == 0 || !absl::StrContains(".)]", pattern[i - 1])) return true;
  }
  return false;
}

std::string FromFilePattern(absl::string_view pattern) {
  std::string expression;
  for (char c : pattern) {
    if (c == '*') {
      expression += ".*";
    } else if (c == '?') {
      expression += '.';
    } else {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)))
        expression += '\\';
      expression += c;
    }
  }
  return expression;
}

// Length of `1`, `[0-3]` or `(1|12)` at the start, 0 when there is none.
size_t BlockNumber(absl::string_view text) {
  const size_t digits =
      std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits > 0 || text.empty()) return digits;
  const size_t end = text[0] == '['   ? text.find(']')
                     : text[0] == '(' ? text.find(')')
                                      : absl::string_view::npos;
  return end == absl::string_view::npos ? 0 : end + 1;
}

// `blk.1.` with its dots by the letter.
std::string WithLiteralBlocks(absl::string_view pattern) {
  static constexpr absl::string_view kBlock = "blk.";
  std::string expression;
  while (!pattern.empty()) {
    const size_t n = absl::StartsWith(pattern, kBlock)
                         ? BlockNumber(pattern.substr(kBlock.size()))
                         : 0;
    const absl::string_view number =
        pattern.substr(std::min(kBlock.size(), pattern.size()), n);
    absl::string_view rest =
        pattern.substr(std::min(kBlock.size() + n, pattern.size()));
    if (n == 0 || !absl::ConsumePrefix(&rest, ".")) {
      expression += pattern[0];
      pattern.remove_prefix(1);
      continue;
    }
    absl::StrAppend(&expression, "blk\\.", number, "\\.");
    // `blk.1.*`: any text behind, not any number of dots.
    if (absl::StartsWith(rest, "*")) expression += '.';
    pattern = rest;
  }
  return expression;
}

}  // namespace

absl::StatusOr<NamePattern> NamePattern::Parse(absl::string_view pattern) {
  if (pattern.empty()) {
    return absl::InvalidArgumentError(
        "tensor name pattern: it is empty: write part of a tensor's name");
  }
  const std::string expression =
      IsFilePattern(pattern)             ? FromFilePattern(pattern)
      : absl::StrContains(pattern, "\\") ? std::string(pattern)
                                         : WithLiteralBlocks(pattern);
  int code_number = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()),
                    expression.size(), 0, &code_number, &offset, nullptr);
  if (code == nullptr) {
    PCRE2_UCHAR reason[128] = {};
    pcre2_get_error_message(code_number, reason, sizeof(reason));
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor name pattern \"", pattern, "\": at character ", offset, ": ",
        reinterpret_cast<const char*>(reason), ": mend the expression"));
  }
  return NamePattern(std::string(pattern),
                     std::shared_ptr<pcre2_code>(code, pcre2_code_free));
}

bool NamePattern::Matches(absl::string_view name) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>
      match(pcre2_match_data_create_from_pattern(code_.get(), nullptr),
            pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context,
                        decltype(&pcre2_match_context_free)>
      limits(pcre2_match_context_create(nullptr), pcre2_match_context_free);
  pcre2_set_match_limit(limits.get(), 100000);
  return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(name.data()),
                     name.size(), 0, 0, match.get(), limits.get()) >= 0;
}

}  // namespace weft
