// A thin owner of PCRE2's compiled pattern.

#include "loaders/name_pattern.h"

#include <pcre2.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

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

}  // namespace

absl::StatusOr<NamePattern> NamePattern::Parse(absl::string_view pattern) {
  if (pattern.empty()) {
    return absl::InvalidArgumentError(
        "tensor name pattern: it is empty: write part of a tensor's name");
  }
  const std::string expression =
      IsFilePattern(pattern) ? FromFilePattern(pattern) : std::string(pattern);
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
