// How SentencePiece writes tokens: in UTF-8, spaces as U+2581, and one token
// for each byte, for what no other token has.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace weft {

inline constexpr absl::string_view kSpaceMark = "\u2581";

// The text that a piece stands for.
inline std::string PieceText(absl::string_view piece) {
  return absl::StrReplaceAll(piece, {{kSpaceMark, " "}});
}

// The value of "<0x0A>"; -1 when `text` is not of this form.
inline int ByteTokenValue(absl::string_view text) {
  uint32_t value = 0;
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>' ||
      !absl::SimpleHexAtoi(text.substr(3, 2), &value)) {
    return -1;
  }
  return static_cast<int>(value);
}

}  // namespace weft
