// Looking for markers in text that is still coming.
#pragma once

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace weft::answer {

enum class Match { kNo, kMore, kYes };

// Whether `text` begins with `marker`; kMore: what has come of it may.
inline Match Begins(absl::string_view text, absl::string_view marker) {
  if (absl::StartsWith(text, marker)) return Match::kYes;
  return absl::StartsWith(marker, text) ? Match::kMore : Match::kNo;
}

// How much of the end of `text` may be the beginning of `marker`.
inline size_t BeginningAtEnd(absl::string_view text, absl::string_view marker) {
  if (marker.empty()) return 0;
  size_t size = std::min(text.size(), marker.size() - 1);
  while (size > 0 && !absl::EndsWith(text, marker.substr(0, size))) --size;
  return size;
}

inline size_t SkipSpace(absl::string_view text, size_t at) {
  while (at < text.size() &&
         absl::ascii_isspace(static_cast<unsigned char>(text[at]))) {
    ++at;
  }
  return at;
}

}  // namespace weft::answer
