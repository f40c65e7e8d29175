#include "text/printable.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "text/utf8.h"

namespace weft {
namespace {

bool IsObeyed(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) ||  // C0, DEL, C1
         (c >= 0x202a && c <= 0x202e) ||         // directions
         (c >= 0x2066 && c <= 0x206f) || c == 0x2028 ||
         c == 0x2029;  // separators of lines and paragraphs
}

bool IsDirectionMark(char32_t c) {
  return c == 0x061c || c == 0x200e || c == 0x200f;
}

}  // namespace

char32_t CodePointOf(absl::string_view character) {
  const auto byte = [&](size_t i) -> uint8_t { return character[i]; };
  switch (character.size()) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
    case 3:
      return (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 |
             (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
  }
}

std::string Printable(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Utf8Unit unit = Utf8UnitAt(text, i);
    const absl::string_view character = text.substr(i, unit.bytes);
    i += unit.bytes;
    if (character == "\r") continue;
    if (unit.kind == Utf8Unit::kCharacter &&
        IsDirectionMark(CodePointOf(character))) {
      continue;
    }
    if (character == "\n" || character == "\t") {
      result += character[0];
    } else if (unit.kind != Utf8Unit::kCharacter ||
               IsObeyed(CodePointOf(character))) {
      result.append(kReplacementCharacter.data(), kReplacementCharacter.size());
    } else {
      result.append(character.data(), character.size());
    }
  }
  return result;
}

std::string PrintableLine(absl::string_view text) {
  std::string line = Printable(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; },
      ' ');
  return line;
}

std::string PrintableStream::Next(absl::string_view bytes) {
  std::string text;
  if (!waiting_.empty()) {
    text = absl::StrCat(waiting_, bytes);
    bytes = text;
    waiting_.clear();
  }
  // No character has more than four bytes.
  for (size_t size = 1; size <= std::min<size_t>(3, bytes.size()); ++size) {
    const Utf8Unit unit = Utf8UnitAt(bytes, bytes.size() - size);
    if (unit.kind != Utf8Unit::kIncomplete) continue;
    waiting_ = std::string(bytes.substr(bytes.size() - size));
    bytes.remove_suffix(size);
    break;
  }
  return Printable(bytes);
}

std::string PrintableStream::Finish() {
  std::string rest = Printable(waiting_);
  waiting_.clear();
  return rest;
}

}  // namespace weft
