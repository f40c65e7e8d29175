#include "text/utf8.h"

#include <cstdint>

namespace weft {

Utf8Unit Utf8UnitAt(absl::string_view text, size_t position) {
  const auto byte = [&](size_t i) {
    return static_cast<uint8_t>(text[position + i]);
  };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {Utf8Unit::kCharacter, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Unit::kIllFormed, 1};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range keeps out overlong forms, surrogates and what lies
  // beyond U+10FFFF.
  uint8_t low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (size_t i = 1; i < length; ++i) {
    if (position + i == text.size()) return {Utf8Unit::kIncomplete, i};
    if (byte(i) < low || byte(i) > high) return {Utf8Unit::kIllFormed, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Unit::kCharacter, length};
}

size_t ValidUtf8Prefix(absl::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    const Utf8Unit unit = Utf8UnitAt(text, position);
    if (unit.kind != Utf8Unit::kCharacter) break;
    position += unit.bytes;
  }
  return position;
}

std::string RepairUtf8(absl::string_view bytes) {
  std::string repaired;
  repaired.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t valid = ValidUtf8Prefix(bytes);
    repaired.append(bytes.data(), valid);
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    repaired.append(kReplacementCharacter.data(), kReplacementCharacter.size());
    bytes.remove_prefix(Utf8UnitAt(bytes, 0).bytes);
  }
  return repaired;
}

}  // namespace weft
