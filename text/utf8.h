// Walking over bytes that ought to be UTF-8.
//
// Idea: one function tells what stands at a position; all else (pieces of a
// text, repair, streaming) is built on it. Ill-formed bytes are cut into the
// maximal subparts of the Unicode standard (chapter 3.9, table 3-7), as
// browsers do: each becomes one U+FFFD.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace weft {

// U+FFFD, in UTF-8.
inline constexpr absl::string_view kReplacementCharacter = "\xEF\xBF\xBD";

struct Utf8Unit {
  enum Kind {
    kCharacter,   // a whole, well-formed character
    kIllFormed,   // bytes that no following byte can make good
    kIncomplete,  // the text ends within a character that may still become good
  };
  Kind kind;
  size_t bytes;  // 1..4; for kIncomplete all that is left of the text
};

// What begins at `text[position]`; position < text.size().
Utf8Unit Utf8UnitAt(absl::string_view text, size_t position);

// Length of the longest prefix that is well-formed UTF-8.
size_t ValidUtf8Prefix(absl::string_view text);

// `bytes` with each ill-formed or incomplete part replaced by U+FFFD.
std::string RepairUtf8(absl::string_view bytes);

}  // namespace weft
